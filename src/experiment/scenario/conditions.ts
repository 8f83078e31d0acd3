/** What a step waits for, looked for in the trace. */
import type { TraceEntry } from "../../trace/entry.ts";
import { isTimer, typeOf } from "./names.ts";
import type { Condition } from "./schema.ts";

/** Counts how often a condition came true since it is looked for. */
export class Watch {
  #awaited: Condition | undefined;
  #left = 0;
  #met: () => void = () => undefined;
  readonly #emitted = new Set<string>();
  readonly #roles = new Set<string>();

  /** It has happened as often as it should. */
  get hasHappened(): boolean {
    return this.#left === 0;
  }

  /** What to say of it if it never came: which events or roles there were, as no protocol lists its own. */
  get inVain(): string {
    const { emits, becomes } = this.#awaited ?? {};
    if (emits !== undefined) return neverWas(emits, "the events were", this.#emitted);
    if (becomes !== undefined) return neverWas(becomes, "the roles were", this.#roles);
    return NEVER;
  }

  /** From now on this is looked for; undefined: nothing is. @param then what is done at the very moment in which it is met */
  lookFor(condition: Condition | undefined, then: () => void = () => undefined): void {
    this.#awaited = condition;
    this.#met = then;
    this.#left = condition?.occurrence ?? 0;
  }

  see(entry: TraceEntry): void {
    if (entry.kind === "event") this.#emitted.add(typeOf(entry.event));
    if (entry.kind === "view") this.#roles.add(entry.view.role);
    if (this.#left === 0 || this.#awaited === undefined || !matches(this.#awaited, entry)) return;
    this.#left -= 1;
    if (this.#left === 0) this.#met();
  }
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
