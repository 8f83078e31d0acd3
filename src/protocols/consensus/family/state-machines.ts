/** The deterministic state machines that a replicated log can drive: a map, a counter and a log. Data is plain, operations are text. */

export const machineKinds = ["log", "map", "counter"] as const;
export type MachineKind = (typeof machineKinds)[number];

export interface StateMachine<D extends object> {
  empty(): D;
  /** Changes the data in place. What it does not understand changes nothing, and the result says so. */
  apply(data: D, operation: string): string;
  /** Whether it changes nothing, so that a node may answer from its own data once it knows that they are up to date. */
  isRead(operation: string): boolean;
  /** What the workload asks for, one after the other. */
  sample(client: number, sequence: number): string;
}

const words = (operation: string): string[] => operation.split(" ");
const READ = 100;
const UNKNOWN = "unknown operation";

/** `append TEXT` answers with its place from 1, `read` with the last hundred texts, separated by commas. */
const log: StateMachine<{ entries: string[] }> = {
  empty: () => ({ entries: [] }),
  apply(data, operation) {
    const [verb, ...text] = words(operation);
    if (verb === "append") return String(data.entries.push(text.join(" ")));
    return verb === "read" ? data.entries.slice(-READ).join(",") : UNKNOWN;
  },
  isRead: (operation) => operation === "read",
  sample: (client, sequence) => `append ${client}.${sequence}`,
};

/** `put KEY VALUE` and `delete KEY` answer with what was there, `get KEY` with what is, `cas KEY OLD NEW` with `yes` or `no`; nothing is "". */
const map: StateMachine<{ values: Record<string, string> }> = {
  empty: () => ({ values: {} }),
  apply({ values }, operation) {
    const [verb, key = "", ...rest] = words(operation);
    const before = Object.hasOwn(values, key) ? (values[key] as string) : "";
    // What is put has to be an own key of the object, whatever its name.
    const put = (value: string): void => {
      Object.defineProperty(values, key, { value, enumerable: true, configurable: true, writable: true });
    };
    if (verb === "get") return before;
    if (verb === "put") {
      put(rest.join(" "));
      return before;
    }
    if (verb === "delete") {
      delete values[key];
      return before;
    }
    if (verb !== "cas") return UNKNOWN;
    const [old = "", ...next] = rest;
    if (before !== old) return "no";
    put(next.join(" "));
    return "yes";
  },
  isRead: (operation) => words(operation)[0] === "get",
  sample: (client, sequence) => `put k${sequence % 3} ${client}.${sequence}`,
};

/** `add NUMBER` and `get` answer with the sum. */
const counter: StateMachine<{ sum: number }> = {
  empty: () => ({ sum: 0 }),
  apply(data, operation) {
    const [verb, by = ""] = words(operation);
    if (verb !== "get" && verb !== "add") return UNKNOWN;
    if (verb === "add" && Number.isSafeInteger(data.sum + Number(by))) data.sum += Number(by);
    return String(data.sum);
  },
  isRead: (operation) => operation === "get",
  sample: () => "add 1",
};

// Each knows its own data; who drives one only keeps them.
// biome-ignore lint/suspicious/noExplicitAny: see above
export const stateMachines: Readonly<Record<MachineKind, StateMachine<any>>> = { log, map, counter };
