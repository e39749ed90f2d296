/** Icons as lines, in the colour of the text around them. */

const PATHS = {
  cells: "M4 5h16v5H4zM4 14h16v5H4z",
  sessions: "M3 12h4l2.500-7 4 14 2.500-7h5",
  files: "M4 6a1 1 0 0 1 1-1h4.500l2 2.500H19a1 1 0 0 1 1 1V18a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1z",
  tools: "M14.500 6.500a4 4 0 0 0-5.300 5L4 16.700 7.300 20l5.200-5.200a4 4 0 0 0 5-5.300L15 12l-3-3z",
  approvals: "M12 3l7.500 3v5.500c0 4.500-3 7.800-7.500 9.500-4.500-1.700-7.500-5-7.500-9.500V6zM8.800 12l2.300 2.300 4.200-4.600",
  savings: "M4 20V10M10 20V4M16 20v-7M21 20H3",
  audit: "M7 3.500h7L18.500 8v12.500H7zM14 3.500V8h4.500M10 12.500h5.500M10 16.500h5.500",
  skills: "M12 3.500l2.500 5.300 5.800.7-4.300 4 1.100 5.800L12 16.400l-5.100 2.900L8 13.500l-4.300-4 5.800-.7z",
  chat: "M4 5h16v11H10l-4.500 4V16H4z",
  run: "M7 4.500v15l12.500-7.500z",
  stop: "M6.500 6.500h11v11h-11z",
  plus: "M12 5v14M5 12h14",
  trash: "M5 7h14M10 7V4.500h4V7M7 7l1 12.500h8L17 7",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  up: "M12 19V5M6 11l6-6 6 6",
  down: "M12 5v14M6 13l6 6 6-6",
  upload: "M12 16V5M7 10l5-5 5 5M5 19.500h14",
  download: "M12 4v11M7 10.500l5 5 5-5M5 19.500h14",
  refresh: "M19.500 12a7.500 7.500 0 1 1-2.200-5.300L19.500 9M19.500 4v5h-5",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2.500v2M12 19.500v2M2.500 12h2M19.500 12h2M5.300 5.300l1.400 1.400M17.300 17.300l1.400 1.400M5.300 18.700l1.400-1.400M17.300 6.700l1.400-1.400",
  moon: "M19.500 14.500A8 8 0 0 1 9.500 4.500a8 8 0 1 0 10 10z",
  leave: "M14 4.500H5.500v15H14M10 12h10.500M17 8.500l3.500 3.500-3.500 3.500",
  search: "M10.500 4a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13M15.500 15.500L20 20",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  folder: "M4 6a1 1 0 0 1 1-1h4.500l2 2.500H19a1 1 0 0 1 1 1V18a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1z",
  file: "M7 3.500h7L18.500 8v12.500H7zM14 3.500V8h4.500",
  back: "M14.500 5.500L8 12l6.500 6.500",
  eye: "M2.500 12S6 5.500 12 5.500 21.500 12 21.500 12 18 18.500 12 18.500 2.500 12 2.500 12M12 9.500a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5",
  send: "M5 12h13M12.500 6l6 6-6 6",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  const solid = name === "run" || name === "stop";
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill={solid ? "currentColor" : "none"}
      stroke="currentColor"
      stroke-width={name === "more" ? 3 : 1.8}
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

export function IconButton(props: {
  icon: IconName;
  label: string;
  onClick: () => void;
  disabled?: boolean;
  class?: string;
}) {
  return (
    <button
      type="button"
      class={`icon-button ${props.class ?? ""}`}
      aria-label={props.label}
      title={props.label}
      disabled={props.disabled}
      onClick={props.onClick}
    >
      <Icon name={props.icon} />
    </button>
  );
}
