/** The shapes of what the API answers, as docs/api.md has them. */

export interface Me {
  user: string;
  scopes: string[];
  version: string;
  backend: string;
  privacy: string;
  features: { conversations: boolean; skills: boolean; audit: boolean };
}

export interface Session {
  id: string;
  state: "idle" | "running";
  cells: number;
  labels: Record<string, string>;
  limits: Record<string, number>;
  backend: string;
  cpu_seconds: number | null;
  memory: number | null;
  memory_peak: number | null;
  created_at: string;
  expires_at: string | null;
  execution: string | null;
}

export interface Approval {
  id: string;
  tool: string;
  arguments: unknown;
  reason: string;
  session: string;
  cell: number;
  execution: string | null;
  waiting: number;
  asked_at: string;
}

export interface Output {
  type: string;
  data: string;
  encoding?: "base64";
  name: string;
  cell: number;
  path: string | null;
}

export interface Failure {
  type: string;
  message: string;
  traceback: string;
  hint: string;
}

export interface Result {
  status: string;
  limit: string | null;
  outputs: Output[];
  failure: Failure | null;
  error: string | null;
  notes: string[];
  state: "kept" | "rewound" | "fresh";
  state_cell: number | null;
  cell: number;
  execution_time_ms: number;
  usage: { cpu_ms: number | null; memory_peak: number | null };
  calls: { name: string; arguments: string; status: string; milliseconds: number }[];
  ledger: { saved: number; direct: number; read: number } | null;
}

export interface FileInfo {
  path: string;
  size: number;
  modified_at: string | null;
}
