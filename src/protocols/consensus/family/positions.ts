/** How consensus stands: to whose ballot an acceptor has promised itself, and who coordinates. */
import { positioned, present } from "../../position.ts";
import type { Paxos } from "../paxos/vocabulary.ts";
import type { TwoPhaseCommit } from "../two-phase-commit/vocabulary.ts";

export const byPromises = positioned<Paxos["state"]>(({ promised }) => present({ grantedTo: promised?.node }));

export const aroundCoordinator = positioned<TwoPhaseCommit["state"]>(({ coordinator, parts }, node) => {
  const all = Object.entries(parts).map(([by, part]) => ({ by: Number(by), status: part.status }));
  const doubts = all.filter(({ by, status }) => status === "in doubt" && by !== node).map(({ by }) => by);
  const named = coordinator.phase === "idle" ? all.at(-1)?.by : node;
  return present({ towards: named, waitsFor: doubts });
});
