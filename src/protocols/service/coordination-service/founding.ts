/** What the log of each member of a new cluster holds that does not begin with nothing: one snapshot, which all of them have. */
import type { Chunk } from "../../../core/chunk.ts";
import type { NodeId } from "../../../core/protocol.ts";
import type { Raft } from "../../consensus/raft/vocabulary.ts";
import { replicaDefaults } from "./replica.ts";
import { beginWriting, nextChunk } from "./snapshot.ts";
import type { Data } from "./state.ts";

/** Of the snapshot: it stands for all that there was before the first entry. */
const INDEX = 1;
const TERM = 1;

export function foundingRecords(data: Data, members: readonly NodeId[]): Raft["record"][] {
  const configuration = { voters: [...members].sort((a, b) => a - b), learners: [], outgoing: null };
  const chunks = snapshotOfData(data);
  return [
    { type: "voted", term: TERM, votedFor: null },
    { type: "snapshot", index: INDEX, term: TERM, configuration, offset: INDEX, offsetTerm: TERM, chunks },
  ];
}

function snapshotOfData(data: Data): Chunk[] {
  const writing = beginWriting(INDEX, data, 0);
  const chunks: Chunk[] = [];
  for (let isOver = false; !isOver; ) {
    const { chunk, isLast } = nextChunk(writing, replicaDefaults.chunkChars);
    chunks.push(chunk);
    isOver = isLast;
  }
  return chunks;
}
