/** What the log of each member of a new cluster holds that does not begin with nothing: one snapshot, which all of them have. */
import type { NodeId } from "../../../core/protocol.ts";
import { chunkAt } from "../../consensus/family/chunks.ts";
import { MAX_CHUNK_CHARS } from "../../consensus/raft/options.ts";
import type { Raft } from "../../consensus/raft/vocabulary.ts";
import type { Data } from "./state.ts";

/** Of the snapshot: it stands for all that there was before the first entry. */
const INDEX = 1;
const TERM = 1;

export function foundingRecords(data: Data, members: readonly NodeId[]): Raft["record"][] {
  const text = JSON.stringify({ data, digest: 0 });
  const configuration = { voters: [...members].sort((a, b) => a - b), learners: [], outgoing: null };
  const records: Raft["record"][] = [
    { type: "voted", term: TERM, votedFor: null },
    { type: "snapshot", index: INDEX, term: TERM, configuration, offset: INDEX, offsetTerm: TERM },
  ];
  for (let at = 0; at < text.length; ) {
    const chunk = chunkAt(text, at, MAX_CHUNK_CHARS);
    records.push({ type: "snapshotText", text: chunk });
    at += chunk.length;
  }
  return records;
}
