import { defineConfig } from "vite";

// Names of packages, not of files, decide what is loaded together: the page is there before the editor is.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/divingbell/surfaces/http/console/static",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // the policy of the page allows no styles and scripts but files of ours
    modulePreload: { polyfill: false },
    license: { fileName: "licenses.md" },
  },
});
