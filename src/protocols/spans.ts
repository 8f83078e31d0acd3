/** What a node is in for some time, told from its picture: the rules that presentations choose from. Pages of a live cluster get the choice as data. */
import type { NodeId, View } from "../core/protocol.ts";

export interface Span {
  readonly kind: "inside" | "waiting" | "leading" | "electing";
  /** Such as `term 3`; empty where the kind says it all. */
  readonly words: string;
}

/** `section`: in the critical section or waiting for it; `leadership`: leading or in an election; `doubt`: voted and not told. */
export type SpanRule = "section" | "leadership" | "doubt" | "none";

export interface Spans {
  readonly spans: SpanRule;
  /** What a view's `term` is called in the paper. */
  readonly term: string;
}

const ELECTING =
  /^(campaigning|deferring|participant|pre-voting|requesting votes|calling|taking part|candidate|pre-candidate|joining|preparing)/;

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
  none: () => null,
};

/** What a node is in as long as it looks like this; null: nothing that deserves a mark. */
export function spanOf({ spans, term }: Spans, view: View, node: NodeId): Span | null {
  return rules[spans](view, node, term);
}

export const isSameSpan = (a: Span | null, b: Span | null): boolean => a?.kind === b?.kind && a?.words === b?.words;
