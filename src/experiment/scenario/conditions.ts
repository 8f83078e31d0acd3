/** What a step waits for, looked for in the trace. */
import type { TraceEntry } from "../../trace/entry.ts";
import type { Condition } from "./schema.ts";
import { isTimer, typeOf } from "./words.ts";

/** Counts how often a condition came true since it was set. */
export interface Watch {
  /** From now on this is looked for; undefined: nothing is. @param then what is done at the very moment in which it is met */
  set(condition: Condition | undefined, then?: () => void): void;
  see(entry: TraceEntry): void;
  /** It has happened as often as it should. */
  readonly hasHappened: boolean;
  /** What to say of it if it never came: which events or roles there were, as no protocol lists its own. */
  readonly inVain: string;
}

export function watch(): Watch {
  let awaited: Condition | undefined;
  let left = 0;
  let met: () => void = () => undefined;
  const emitted = new Set<string>();
  const roles = new Set<string>();
  return {
    set(condition, then = () => undefined) {
      awaited = condition;
      met = then;
      left = condition?.occurrence ?? 0;
    },
    see(entry) {
      if (entry.kind === "event") emitted.add(typeOf(entry.event));
      if (entry.kind === "view") roles.add(entry.view.role);
      if (left === 0 || awaited === undefined || !matches(awaited, entry)) return;
      left -= 1;
      if (left === 0) met();
    },
    get hasHappened() {
      return left === 0;
    },
    get inVain() {
      if (awaited?.emits !== undefined) return neverWas(awaited.emits, "the events were", emitted);
      if (awaited?.becomes !== undefined) return neverWas(awaited.becomes, "the roles were", roles);
      return NEVER;
    },
  };
}

const NEVER = "it never happened";

function neverWas(word: string, verb: string, words: ReadonlySet<string>): string {
  if (words.has(word)) return NEVER;
  return `${NEVER}: ${verb} ${words.size === 0 ? "none" : [...words].join(", ")}`;
}

function matches(condition: Condition, entry: TraceEntry): boolean {
  const { node, to, from } = condition;
  if (node !== undefined && node !== entry.node) return false;
  switch (entry.kind) {
    case "send":
      return condition.sends === typeOf(entry.message) && (to === undefined || to === entry.to);
    case "receive":
      return condition.receives === typeOf(entry.message) && (from === undefined || from === entry.from);
    case "event":
      return condition.emits === typeOf(entry.event);
    case "timeout":
      return condition.timesOut !== undefined && isTimer(entry.timer, condition.timesOut);
    case "view":
      return condition.becomes === entry.view.role;
    default:
      return false;
  }
}

/** `node 5 sends answer to 4, for the second time`, for people. */
export function conditionText({ node, occurrence, ...rest }: Condition): string {
  const who = node === undefined ? "any node" : `node ${node}`;
  const what = [
    ...(rest.sends === undefined ? [] : [`sends ${rest.sends}`, rest.to === undefined ? "" : `to ${rest.to}`]),
    ...(rest.receives === undefined
      ? []
      : [`receives ${rest.receives}`, rest.from === undefined ? "" : `from ${rest.from}`]),
    ...(rest.emits === undefined ? [] : [`emits ${rest.emits}`]),
    ...(rest.timesOut === undefined ? [] : [`times out: ${rest.timesOut}`]),
    ...(rest.becomes === undefined ? [] : [`becomes ${rest.becomes}`]),
  ].filter((part) => part !== "");
  return [who, ...what, ...(occurrence > 1 ? [`(occurrence ${occurrence})`] : [])].join(" ");
}
