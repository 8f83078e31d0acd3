/**
 * What nodes say of what they have: acknowledgements ride on every message, and who has nothing to send says them alone.
 * From them follows what is stable, so is freed, and so how much more its sender may send. Who knows of something that is
 * not stable speaks again and again: so the loss of the last message shows, and that of the last acknowledgement. When all
 * is stable, nobody speaks.
 */
import { type IpMulticastOptions, patience } from "./options.ts";
import { deliverUpTo, free, haveSpoken, keep, learnStable, settleStable, sizeOf } from "./streams.ts";
import { acknowledged, type Ctx, type Message, receivedVector, type State, type Stream } from "./vocabulary.ts";

export type Sessions<P> = ReturnType<typeof sessions<P>>;

export function sessions<P>(options: IpMulticastOptions) {
  const { ackMs, ackEvery, windowMessages, windowBytes, maxWaiting } = options;
  const repeating = patience(options.sessionMs, options.maxSessionMs, options.maxRepeats);

  const own = ({ streams, me }: State<P>): Stream<P> => streams[me] as Stream<P>;

  function speak(state: State<P>, asks: boolean, ctx: Ctx<P>): void {
    const stable = state.streams.map((stream) => stream.stable);
    ctx.broadcast({ type: "session", view: state.view, acks: acknowledged(state), stable, asks });
    haveSpoken(state);
  }

  const isUnstable = ({ streams }: State<P>): boolean => streams.some(({ stable, known }) => stable < known);

  const isUrged = ({ fresh, hasRequest }: State<P>): boolean => fresh > 0 || hasRequest;

  function keepTalking(state: State<P>, ctx: Ctx<P>): void {
    if (!options.sessions || state.phase === "outside") return;
    if (isUrged(state)) {
      if (state.talk === "soon") return;
      state.talk = "soon";
      ctx.setTimer("session", [ackMs / 2, ackMs]);
    } else {
      if (state.talk === "soon") return;
      if (!isUnstable(state)) return fallSilent(state, ctx);
      if (state.talk === "later" || repeating.isOver(state.repeats)) return;
      state.talk = "later";
      ctx.setTimer("session", repeating.waitMs(state.repeats));
    }
    state.hasSpoken = false;
  }

  function fallSilent(state: State<P>, ctx: Ctx<P>): void {
    if (state.talk === "later") ctx.cancelTimer("session");
    state.talk = "none";
  }

  /** Whatever has waited long for something to happen need not wait so long for the next. */
  function goOn(state: State<P>): void {
    if (state.repeats === 0) return;
    state.repeats = 0;
    if (state.talk === "later") state.talk = "none";
  }

  /** The timer `session`. Who has sent something meanwhile has said it all, and waits anew. */
  function talk(state: State<P>, ctx: Ctx<P>): void {
    state.talk = "none";
    if (!state.hasSpoken && isUrged(state)) speak(state, false, ctx);
    else if (!state.hasSpoken && isUnstable(state)) {
      state.repeats = repeating.next(state.repeats);
      speak(state, true, ctx);
    }
    keepTalking(state, ctx);
  }

  /** A message of another has come that was not known yet. `isAlone`: all before it is stable. */
  function count(state: State<P>, isAlone: boolean, ctx: Ctx<P>): void {
    state.fresh += 1;
    const isDue = state.fresh >= ackEvery || (isAlone && options.promptAcks);
    if (options.sessions && isDue) speak(state, false, ctx);
  }

  /** What a member says that it has received. */
  function hear(state: State<P>, member: number, acks: readonly number[], ctx: Ctx<P>): void {
    for (let sender = 0; sender < acks.length; sender++) {
      const stream = state.streams[sender] as Stream<P>;
      const ack = acks[sender] as number;
      const before = stream.acks[member] as number;
      if (ack <= before) continue;
      stream.acks[member] = ack;
      if (ack > stream.known) stream.known = ack;
      if (before === stream.stable) settle(state, sender, ctx);
    }
  }

  function learn(state: State<P>, sender: number, stable: number, ctx: Ctx<P>): void {
    if (learnStable(state.streams[sender] as Stream<P>, stable)) release(state, sender, ctx);
  }

  /** What has been received here may have been all that was missing anywhere. While the group changes, that does not count. */
  function settle(state: State<P>, sender: number, ctx: Ctx<P>): void {
    if (state.promised === null && settleStable(state.streams[sender] as Stream<P>)) release(state, sender, ctx);
  }

  /** More is stable than before: it is freed, and where it is one's own, there is room for more. */
  function release(state: State<P>, sender: number, ctx: Ctx<P>): void {
    const freed = free(state.streams[sender] as Stream<P>);
    goOn(state);
    if (sender !== state.me) return;
    for (const { payload } of freed) state.unstableBytes -= sizeOf(payload);
    ctx.emit({ type: "stable", count: own(state).stable });
    sendWaiting(state, ctx);
  }

  const hasRoom = (state: State<P>, payload: P): boolean => {
    const { known, stable } = own(state);
    if (known === stable) return true; // However large it is.
    return known - stable < windowMessages && state.unstableBytes + sizeOf(payload) <= windowBytes;
  };

  function send(state: State<P>, payload: P, ctx: Ctx<P>): void {
    if (state.phase === "open" && state.waiting.length === 0 && hasRoom(state, payload))
      return multicast(state, payload, ctx);
    if (state.waiting.length >= maxWaiting) ctx.emit({ type: "refused", payload });
    else state.waiting.push(payload);
  }

  function sendWaiting(state: State<P>, ctx: Ctx<P>): void {
    while (state.phase === "open" && state.waiting.length > 0 && hasRoom(state, state.waiting[0] as P))
      multicast(state, state.waiting.shift() as P, ctx);
  }

  /** There will be no room in this view any more: what has waited for it is of this view, and goes out now. */
  function sayAll(state: State<P>, ctx: Ctx<P>): void {
    for (const payload of state.waiting.splice(0)) multicast(state, payload, ctx);
  }

  function multicast(state: State<P>, payload: P, ctx: Ctx<P>): void {
    const { me, view } = state;
    const stream = own(state);
    const number = stream.known + 1;
    keep(stream, number, payload);
    stream.acks[me] = number;
    state.unstableBytes += sizeOf(payload);
    ctx.broadcast({ type: "data", view, number, stable: stream.stable, acks: receivedVector(state), payload });
    haveSpoken(state);
    deliverUpTo(state, me, number, ctx);
    settle(state, me, ctx); // There may be nobody else.
    goOn(state);
    keepTalking(state, ctx);
  }

  /** Who asks is answered if this node knows of more. */
  function answer(state: State<P>, { acks, stable, asks }: Message<P, "session">): void {
    if (!asks) return;
    const knowsMore = state.streams.some(
      (stream, sender) =>
        stream.stable > (stable[sender] as number) || (stream.acks[state.me] as number) > (acks[sender] as number),
    );
    if (knowsMore) state.hasRequest = true;
  }

  return { keepTalking, talk, count, hear, settle, learn, send, sendWaiting, sayAll, answer };
}
