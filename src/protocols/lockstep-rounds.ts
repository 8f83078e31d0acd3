/**
 * Registry entries for consensus algorithms with synchronous rounds. Every node proposes a value, and all nodes end
 * each round together.
 */
import { floodSet } from "./consensus/flood-set.ts";
import { interactiveConsistency, signedInteractiveConsistency } from "./consensus/interactive-consistency.ts";
import { lockstep } from "./consensus/lockstep/lockstep.ts";
import { entry, type RegistryEntry } from "./entry.ts";
import { consensusOfAll } from "./family.ts";
import { settled } from "./system.ts";

/** The values that the nodes propose if they start without a command. */
const values = ["a", "b", "c", "d"];

export const lockstepRounds: Readonly<Record<string, RegistryEntry>> = {
  "flood-set": entry(
    consensusOfAll,
    "agreement despite f crashes, in f + 1 synchronous rounds; every node sends all the values it knows to all nodes",
    floodSet,
    {
      variants: {
        bounded: {
          summary: "nodes propose at startup, for the checker",
          algorithm: settled(floodSet, { values }),
          ends: true,
        },
        "f-rounds": {
          summary: "the same with f rounds, one too few: after f crashes the nodes can disagree",
          algorithm: settled(floodSet, { values, rounds: "f" }),
          ends: true,
        },
      },
      mustStart: true,
      check: { timers: "rounds", variant: "bounded" },
    },
  ),
  "interactive-consistency": entry(
    consensusOfAll,
    "all honest nodes agree on a vector with one value per node, despite Byzantine nodes: one broadcast per general",
    interactiveConsistency,
    {
      variants: {
        signed: {
          summary: "with signed messages: any number of Byzantine nodes",
          algorithm: signedInteractiveConsistency,
        },
        bounded: {
          summary: "nodes propose at startup, for the checker",
          algorithm: settled(interactiveConsistency, { values }),
          ends: true,
        },
        "bounded-signed": {
          summary: "the same with signed messages",
          algorithm: settled(signedInteractiveConsistency, { values }),
          ends: true,
        },
      },
      mustStart: true,
      check: { timers: "rounds", variant: "bounded" },
      shown: { labels: { values: ["round"] }, periodic: ["round"] },
    },
  ),
  lockstep: entry(
    consensusOfAll,
    "turns of a game: all players commit to their actions before any player reveals its own; proofs convict cheaters",
    lockstep,
    {
      variants: {
        echo: {
          summary: "players exchange the commitments they received, to detect equivocation",
          algorithm: settled(lockstep, { echoes: true }),
        },
        bounded: {
          summary: "with echoes, one automatic turn and no retries, for the checker",
          algorithm: settled(lockstep, { echoes: true, moves: ["rock", "paper"], turns: 1, resends: 0 }),
          ends: true,
        },
        "bounded-plain": {
          summary: "the same without echoes: an equivocating player can look ahead",
          algorithm: settled(lockstep, { moves: ["rock", "paper"], turns: 1, resends: 0 }),
          ends: true,
        },
      },
      mustStart: true,
      check: { timers: "rounds", variant: "bounded" },
      shown: { term: "turn", labels: { commit: [], reveal: [] } },
    },
  ),
};
