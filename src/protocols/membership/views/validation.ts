/** Messages that are dropped: rounds and views such as nobody who follows the protocol comes to. */
import type { Context } from "../../../core/protocol.ts";
import { type Accepted, type GroupView, isInside, type Views } from "./vocabulary.ts";

type State = Views["state"];
type Ctx = Context<Views>;

/** Nobody is so many rounds or views ahead of another: at one a second that takes 136 years. */
const REACH = 2 ** 32;

/** Each time a node prepares, its round grows by less than twice the number of nodes. */
export const isAbsurdRound = ({ promised }: State, round: number, ctx: Ctx): boolean =>
  round > promised + 2 * (ctx.peers.length + 1) * REACH;

/** A view said to be decided, or proposed. One that is known already has nothing in it that matters. */
export function isAbsurdView(state: State, next: GroupView, ctx: Ctx): boolean {
  const steps = next.number - state.view.number;
  if (steps <= 0) return false;
  if (steps > REACH || !isOfNodes(next, ctx)) return true;
  const goesOn = next.members.some(({ node, incarnation }) => node === ctx.self && incarnation === state.incarnation);
  // This life has promised nothing beyond the view that it knows.
  if (steps > 1) return goesOn;
  if (next.cut.length !== state.view.members.length) return true;
  return goesOn && isInside(state, ctx.self) && !state.isBlocked;
}

/** What has been accepted is for the very next view. */
export const isAbsurdValue = (state: State, accepted: Accepted | null, ctx: Ctx): boolean =>
  accepted !== null && (accepted.view.number !== state.view.number + 1 || isAbsurdView(state, accepted.view, ctx));

/** Ascending, and each once. */
function isOfNodes({ members }: GroupView, { self, peers }: Ctx): boolean {
  return members.every(({ node }, index) => {
    const before = members[index - 1];
    return (node === self || peers.includes(node)) && (before === undefined || before.node < node);
  });
}
