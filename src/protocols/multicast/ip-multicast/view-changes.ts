/**
 * Handles view changes. First, all members block: they report the messages that they have received, and acknowledge no
 * more. Then each member obtains the messages that it lacks, up to an agreed cut. Finally, all members deliver up to
 * the cut, discard the rest, and start the next view.
 */
import { InvariantViolation } from "../../../core/errors.ts";
import type { NodeId } from "../../../core/protocol.ts";
import type { Repairs } from "./repairs.ts";
import { deliverUpTo, type Sessions, stateIn } from "./sessions.ts";
import { type Ctx, type IpMulticast, isCutOf, receivedOf, receivedVector, type State } from "./vocabulary.ts";

type Command<P, T extends string> = Extract<IpMulticast<P>["command"], { type: T }>;

/** Creates the handlers for commands from the view agreement. */
export function viewChanges<P>(sessions: Sessions<P>, repairs: Repairs<P>) {
  function flush(state: State<P>, { round }: Command<P, "flush">, ctx: Ctx<P>): void {
    if (state.phase === "open") {
      sessions.sayAll(state, ctx);
      state.phase = "blocked";
      state.promised = receivedVector(state);
      ctx.emit({ type: "blocked" });
    }
    state.fill = null; // Any earlier round is now obsolete.
    ctx.emit({ type: "flushed", round, received: receivedVector(state) });
  }

  /**
   * Obtains the missing messages up to the cut. A node outside the group obtains nothing, because its first view starts
   * empty.
   */
  function fill(state: State<P>, { round, cut, holders }: Command<P, "fill">, ctx: Ctx<P>): void {
    if (state.phase === "outside") return ctx.emit({ type: "filled", round });
    if (isOfAnotherGroup(state, cut)) return;
    state.fill = { round, cut, holders };
    repairs.beAtEase(state, ctx); // The node that was asked last may have left, so request again at once.
    for (const [sender, stream] of state.streams.entries()) {
      stream.known = Math.max(stream.known, cut[sender] as number);
      stream.noticed = stream.known;
      stream.requested = receivedOf(state, sender);
    }
    repairs.ask(state, ctx);
    sayIfFilled(state, ctx);
  }

  function sayIfFilled(state: State<P>, ctx: Ctx<P>): void {
    if (state.fill === null || !holds(state, state.fill.cut)) return;
    ctx.emit({ type: "filled", round: state.fill.round });
    state.fill = null;
  }

  const holds = (state: State<P>, cut: readonly number[]): boolean =>
    cut.every((last, sender) => receivedOf(state, sender) >= last);

  const isOfAnotherGroup = ({ members }: State<P>, cut: readonly number[]): boolean => cut.length !== members.length;

  /**
   * Delivers up to the cut and starts the next view.
   * @throws InvariantViolation if this node lacks messages in the cut, or has delivered more than other members will.
   */
  function change(state: State<P>, { view, members, cut }: Command<P, "change">, ctx: Ctx<P>): void {
    if (state.phase !== "outside") {
      if (!isCutOf(state, cut))
        throw new InvariantViolation(
          "not-the-cut",
          `expected to have received exactly the messages up to ${cut.join()} from the members ${state.members.join()} before view ${view}, got ${receivedVector(state).join()}`,
        );
      for (const [sender, last] of cut.entries()) deliverUpTo(state, sender, last, ctx);
    }
    begin(state, view, members, ctx);
    ctx.emit({ type: "installed", view, members });
    sessions.sendWaiting(state, ctx);
  }

  /**
   * Discards undelivered messages and the messages that were waiting for room in this view, because an ordering layer
   * above has counted them as part of this view. Messages sent since the change began, or outside the group, wait for
   * the next view.
   */
  function eject(state: State<P>, ctx: Ctx<P>): void {
    if (state.phase === "open") state.waiting = [];
    begin(state, state.view, [], ctx);
    ctx.emit({ type: "ejected" });
  }

  function begin(state: State<P>, view: number, members: NodeId[], ctx: Ctx<P>): void {
    for (const timer of ["nack", "again", "repair", "session"] as const) ctx.cancelTimer(timer);
    Object.assign(state, stateIn(ctx.self, view, [...members], state.waiting));
  }

  return { flush, fill, sayIfFilled, change, eject };
}
