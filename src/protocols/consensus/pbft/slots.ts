/** The log of a replica: what it knows of each sequence number between its watermarks, and the journal of that. */
import { entriesIn, nodesIn, type PerNode } from "../../../core/per-node.ts";
import type { Context, NodeId } from "../../../core/protocol.ts";
import type { Signed } from "../../../core/signatures.ts";
import { include } from "../../node-set.ts";
import { chunkAt } from "../family/chunks.ts";
import { MAX_CHUNK_CHARS, type PbftOptions } from "./options.ts";
import { type Assignment, type Batch, isSame, type Pbft, type Request, type Slot } from "./vocabulary.ts";

type State = Pbft["state"];
type Ctx = Context<Pbft>;

/** Of each sequence number, the batches of so many views are kept. */
const MAX_BATCHES = 4;

/** Between the watermarks (§4.2): above the stable checkpoint, and not further than the window. */
export const isInWindow = ({ stable }: State, sequence: number, { window }: PbftOptions): boolean =>
  sequence > stable.sequence && sequence <= stable.sequence + window;

export function slotAt(state: State, sequence: number): Slot {
  state.slots[sequence] ??= {
    prePrepare: null,
    prepares: {},
    commits: {},
    prepared: null,
    committed: null,
    batches: [],
  };
  return state.slots[sequence];
}

/** Ascending. */
export const slotsOf = ({ slots }: State): [sequence: number, slot: Slot][] => entriesIn(slots);

export const batchOf = ({ batches }: Slot, digest: string): Batch | undefined =>
  batches.find((batch) => batch.digest === digest);

/** What a certificate, a pre-prepare or commits name has to stay. */
const isNamed = ({ prePrepare, prepared, committed }: Slot, digest: string): boolean =>
  [prePrepare?.value.digest, prepared?.prePrepare.value.digest, committed].includes(digest);

export function keepBatch(slot: Slot, digest: string, requests: Signed<Request>[]): void {
  if (batchOf(slot, digest) !== undefined) return;
  slot.batches.push({ digest, requests });
  while (slot.batches.length > MAX_BATCHES) {
    const at = slot.batches.findIndex((batch) => !isNamed(slot, batch.digest));
    if (at === -1) break; // No more than three are named.
    slot.batches.splice(at, 1);
  }
}

/** The digests that are agreed upon, or may be, of which the batch is not here. */
export const wantedOf = (slot: Slot): string[] =>
  [slot.prePrepare?.value.digest, slot.committed].filter(
    (digest): digest is string => typeof digest === "string" && batchOf(slot, digest) === undefined,
  );

/** Sent again: its signature need not be verified again. */
export const isHad = (votes: PerNode<Signed<Assignment>> | undefined, { by, value }: Signed<Assignment>): boolean => {
  const known = votes?.[by];
  return known !== undefined && isSame(known.value, value);
};

/**
 * The latest that a replica has signed. Two for one view that differ show that it lies.
 * @returns whether it is kept.
 */
export function keep(state: State, votes: PerNode<Signed<Assignment>>, vote: Signed<Assignment>, ctx: Ctx): boolean {
  const known = votes[vote.by];
  if (known !== undefined && known.value.view === vote.value.view && known.value.digest !== vote.value.digest) {
    expose(state, vote, ctx);
    return false;
  }
  if (known !== undefined && known.value.view >= vote.value.view) return false;
  votes[vote.by] = vote;
  return true;
}

/** Said once of each, however often it lies. */
export function expose(state: State, { by: liar, value }: Signed<Assignment>, ctx: Ctx): void {
  if (state.exposed.includes(liar)) return;
  include(state.exposed, liar);
  ctx.emit({ type: "exposed", liar, view: value.view, sequence: value.sequence });
}

/** Who has signed this assignment, ascending. */
export const signersOf = (votes: PerNode<Signed<Assignment>>, { view, digest }: Assignment): NodeId[] =>
  nodesIn(votes).filter((node) => {
    const value = votes[node]?.value;
    return value?.view === view && value.digest === digest;
  });

/** All that a replica has to know after a crash takes the place of all that it has journalled. */
export function journal(state: State, ctx: Ctx): void {
  const { view, isChanging, stable, newView } = state;
  const { sequence, digest, executed, proof, text } = stable;
  const records: Pbft["record"][] = [
    { type: "view", view, isChanging },
    { type: "stable", sequence, digest, executed, proof },
  ];
  for (let at = 0; at < text.length; ) {
    const chunk = chunkAt(text, at, MAX_CHUNK_CHARS);
    records.push({ type: "stableText", text: chunk });
    at += chunk.length;
  }
  for (const [at, { batches, prepared, prePrepare }] of slotsOf(state)) {
    for (const { requests } of batches) records.push({ type: "batch", sequence: at, requests });
    if (prepared !== null) records.push({ type: "prepared", ...prepared });
    if (prePrepare !== null) records.push({ type: "prePrepared", prePrepare });
  }
  if (newView !== null) records.push({ type: "newView", ...newView });
  ctx.compact(records);
}
