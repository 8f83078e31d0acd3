/** A node that has missed what was decided asks for it, a fragment at a time: slots from the log, or the snapshot where the log is cut. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { MAX_SNAPSHOT_BYTES } from "../family/replicated-log.ts";
import { isAuxiliary } from "./configurations.ts";
import { decideUpTo, install, learn, tell } from "./decisions.ts";
import { batch, fragmentAt } from "./fragments.ts";
import type { Settings } from "./options.ts";
import type { MultiPaxos, SlotProposal, State } from "./vocabulary.ts";

type Ctx = Context<MultiPaxos>;
type Message<K extends MultiPaxos["message"]["type"]> = Extract<MultiPaxos["message"], { type: K }>;

/** At least as long as a proposal is in a message. */
export const charsOf = ({ value }: SlotProposal): number =>
  64 +
  (value.type === "command" ? value.command.operation.length : 0) +
  (value.type === "members" ? 16 * (value.voters.length + value.learners.length) : 0);

export function askToCatchUp(state: State, from: NodeId, ctx: Ctx): void {
  if (isAuxiliary(state, ctx.self)) return;
  const { decided, incoming } = state;
  const { index, text } = incoming ?? { index: 0, text: "" };
  ctx.send(from, { type: "catchUp", decided, index, offset: text.length });
}

export function answerCatchUp(
  state: State,
  to: NodeId,
  { decided, index, offset }: Message<"catchUp">,
  ctx: Ctx,
): void {
  if (decided >= state.decided) return; // It knows as much.
  if (state.log[decided + 1] !== undefined) return sendEntries(state, to, decided, ctx);
  const { snapshot } = state;
  if (snapshot === null || snapshot.index <= decided) return; // An auxiliary that has forgotten.
  const at = index === snapshot.index && offset <= snapshot.text.length ? offset : 0;
  const text = fragmentAt(snapshot.text, at);
  const isLast = at + text.length === snapshot.text.length;
  const { configurations } = snapshot;
  ctx.send(to, { type: "chunk", index: snapshot.index, offset: at, text, isLast, configurations });
}

function sendEntries(state: State, to: NodeId, after: number, ctx: Ctx): void {
  const decided: SlotProposal[] = [];
  for (let slot = after + 1; slot <= state.decided && decided.length < MAX_ENTRIES; slot++) {
    const proposal = state.log[slot];
    if (proposal === undefined) break;
    decided.push({ slot, ...proposal });
  }
  ctx.send(to, { type: "learn", decided: state.decided, entries: batch(decided, charsOf) });
}

/** In one message. */
export const MAX_ENTRIES = 512;

/** Those that come next; what is known already is skipped, and what would leave a gap. */
export function takeEntries(state: State, from: NodeId, message: Message<"learn">, settings: Settings, ctx: Ctx): void {
  const before = state.decided;
  for (const { slot, ballot, value } of message.entries) {
    if (slot !== state.decided + 1) continue;
    learn(state, slot, { ballot, value }, ctx);
    decideUpTo(state, slot, settings);
  }
  tell(state, before, ctx);
  const isNews = state.decided > before || message.entries.length === 0; // Otherwise it comes late, or twice.
  if (isNews && state.decided < message.decided) askToCatchUp(state, from, ctx);
}

export function takeChunk(state: State, from: NodeId, message: Message<"chunk">, ctx: Ctx): void {
  const { index, offset, text, isLast, configurations } = message;
  if (index <= state.decided || configurations.length === 0) return; // Known by now.
  const before = offset === 0 ? "" : state.incoming?.index === index ? state.incoming.text : null;
  if (before === null || before.length !== offset || offset + text.length > MAX_SNAPSHOT_BYTES) return; // Twice, or of another snapshot.
  state.incoming = { index, text: before + text };
  if (!isLast) return askToCatchUp(state, from, ctx);
  const whole = state.incoming.text;
  state.incoming = null;
  install(state, { index, text: whole, configurations }, ctx);
}
