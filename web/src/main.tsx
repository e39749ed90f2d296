/** Starts the console: who comes is asked once, then the page is there. */

import { render } from "preact";

import { begin } from "./live";
import * as notebook from "./notebook";
import { fromAddress } from "./pages/login";
import { Shell } from "./shell";

const root = document.getElementById("console");
if (root) {
  await fromAddress();
  await begin();
  notebook.restore();
  render(<Shell />, root);
}
