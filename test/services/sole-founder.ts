/** What a member has whose cluster it has founded alone, with a journal that nothing outlives. */
import { KnownMembers } from "../../src/cluster/services/known-members.ts";
import { memoryJournal } from "../journal/memory-journal.ts";

export function soleFounder(id = 1) {
  const journal = memoryJournal();
  return { journal, founders: [id], known: new KnownMembers(journal) };
}
