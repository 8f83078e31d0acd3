/** The presentation that each family's algorithms have unless they declare otherwise. */
import type { NodeId, View } from "../core/protocol.ts";
import {
  consensusHeadline,
  electionHeadline,
  logHeadline,
  membershipHeadline,
  multicastHeadline,
  mutexHeadline,
} from "./headlines.ts";
import { type Presentation, type Span, sectionIn } from "./presentation.ts";

/** What an algorithm says of itself, where its family's does not do. */
export type DeclaredPresentation = Partial<Presentation>;

type Plain = Pick<Presentation, "term" | "span">;

const bare = { topology: "complete", labels: {}, periodic: [] } as const;

const ELECTING =
  /^(campaigning|deferring|participant|pre-voting|requesting votes|calling|taking part|candidate|pre-candidate|joining|preparing)/;

/** Who leads, and who would like to. */
const leadership =
  (term: string) =>
  (view: View, node: NodeId): Span | null => {
    const words = view.term === undefined ? "" : `${term} ${view.term}`;
    if (view.leader === node) return { kind: "leading", words };
    return ELECTING.test(view.role) ? { kind: "electing", words: view.role } : null;
  };

function doubt({ role }: View): Span | null {
  return role === "in doubt" ? { kind: "waiting", words: role } : null;
}

/** The words that a headline is made of can be declared; the headline then goes by them. */
const family = (plain: Plain, headline: (words: Plain) => Presentation["headline"]) => {
  return (declared: DeclaredPresentation = {}): Presentation => {
    const term = declared.term ?? plain.term;
    const own = { term, span: declared.span ?? (plain.span === termless ? leadership(term) : plain.span) };
    return { ...bare, headline: headline(own), ...declared, ...own };
  };
};

/** Stands for `leadership`, of whatever a term is called. */
const termless: Presentation["span"] = () => null;

export const electionShown = family({ term: "term", span: termless }, electionHeadline);
export const mutexShown = family({ term: "epoch", span: ({ role }) => sectionIn(role) }, mutexHeadline);
export const multicastShown = family({ term: "view", span: () => null }, () => multicastHeadline);
export const consensusShown = family({ term: "round", span: doubt }, consensusHeadline);
export const logShown = family({ term: "term", span: termless }, logHeadline);
export const membershipShown = family({ term: "view", span: () => null }, () => membershipHeadline);
