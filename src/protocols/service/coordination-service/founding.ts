/** The initial log of a cluster that is founded with data: a snapshot, which is the same at every member. */
import type { Chunk } from "../../../core/chunk.ts";
import type { NodeId } from "../../../core/protocol.ts";
import type { Raft } from "../../consensus/raft/vocabulary.ts";
import { replicaDefaults } from "./replica.ts";
import { beginWriting, nextChunk } from "./snapshot.ts";
import type { Data } from "./state.ts";

/** The index and term of the snapshot that precedes the first entry. */
const INDEX = 1;
const TERM = 1;

/** Returns the journal records for a member's log. */
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
