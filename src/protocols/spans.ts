/** What a node is in for some time, told from its picture: the rules that presentations choose from. Pages of a live cluster get the choice as data. */
import type { NodeId, View } from "../core/protocol.ts";

export interface Span {
  readonly kind: "inside" | "waiting" | "leading" | "electing" | "preparing" | "proposing" | "view" | "changing";
  /** Such as `term 3`; empty where the kind says it all. */
  readonly words: string;
}

/**
 * `section`: in the critical section or waiting for it; `leadership`: leading or in an election; `doubt`: voted and not told;
 * `ballot`: preparing or proposing, in a ballot of its own; `views`: in a view, or between two.
 */
export type SpanRule = "section" | "leadership" | "doubt" | "ballot" | "views" | "none";

export interface Spans {
  readonly spans: SpanRule;
  /** What a view's `term` is called in the paper. */
  readonly term: string;
}

const ELECTING =
  /^(campaigning|deferring|participant|pre-voting|requesting votes|calling|taking part|candidate|pre-candidate|joining|preparing)/;

const CHANGING = /^(changing|view change)/;

const rules: Readonly<Record<SpanRule, (view: View, node: NodeId, term: string) => Span | null>> = {
  section({ role }) {
    if (role.startsWith("held")) return { kind: "inside", words: "" };
    return role.startsWith("wanted") ? { kind: "waiting", words: "" } : null;
  },
  leadership(view, node, term) {
    const words = view.term === undefined ? "" : `${term} ${view.term}`;
    if (view.leader === node) return { kind: "leading", words };
    return ELECTING.test(view.role) ? { kind: "electing", words: view.role } : null;
  },
  doubt: ({ role }) => (role === "in doubt" ? { kind: "waiting", words: role } : null),
  ballot({ role, term: round }, node, term) {
    const words = `${term} ${round}.${node}`;
    return role === "preparing" || role === "proposing" ? { kind: role, words } : null;
  },
  views(view, node, term) {
    if (CHANGING.test(view.role)) return { kind: "changing", words: "" };
    // Where nobody leads, view 0 is the one before the first.
    if (view.term === undefined || (view.term === 0 && view.leader === undefined) || view.role === "outside")
      return null;
    return { kind: view.leader === node ? "leading" : "view", words: `${term} ${view.term}` };
  },
  none: () => null,
};

/** What a node is in as long as it looks like this; null: nothing that deserves a mark. */
export function spanOf({ spans, term }: Spans, view: View, node: NodeId): Span | null {
  return rules[spans](view, node, term);
}

export const isSameSpan = (a: Span | null, b: Span | null): boolean => a?.kind === b?.kind && a?.words === b?.words;
