/** The presentation that each family's algorithms have unless they declare otherwise. */
import {
  consensusHeadline,
  electionHeadline,
  logHeadline,
  membershipHeadline,
  multicastHeadline,
  mutexHeadline,
} from "./headlines.ts";
import type { Presentation } from "./presentation.ts";
import type { Spans } from "./spans.ts";

/** What an algorithm says of itself, where its family's does not do. */
export type DeclaredPresentation = Partial<Presentation>;

const bare = {
  topology: "complete",
  position: () => ({}),
  carriers: [],
  withheld: {},
  untilMs: 1_000,
  labels: {},
  periodic: [],
} as const;

/** The words that a headline is made of can be declared; the headline then goes by them. */
const family = (plain: Spans, headline: (words: Spans) => Presentation["headline"]) => {
  return (declared: DeclaredPresentation = {}): Presentation => {
    const own = { term: declared.term ?? plain.term, spans: declared.spans ?? plain.spans };
    return { ...bare, headline: headline(own), ...declared, ...own };
  };
};

export const electionShown = family({ term: "term", spans: "leadership" }, electionHeadline);
export const mutexShown = family({ term: "epoch", spans: "section" }, mutexHeadline);
export const multicastShown = family({ term: "view", spans: "views" }, () => multicastHeadline);
export const consensusShown = family({ term: "round", spans: "doubt" }, consensusHeadline);
export const logShown = family({ term: "term", spans: "leadership" }, logHeadline);
/** Of what stands on the coordination service: of its log what a reader looks for, without what only keeps coming. */
export const serviceShown: DeclaredPresentation = {
  labels: {
    appendEntries: ["term", "commitIndex"],
    appended: ["matchIndex"],
    forward: [],
    committed: ["commitIndex"],
  },
  periodic: ["heartbeat", "heartbeatAnswered", "quorum", "renew", "sweep", "idle", "committed"],
};
export const membershipShown = family({ term: "view", spans: "views" }, () => membershipHeadline);
