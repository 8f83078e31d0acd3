/** Registry entries of algorithms where every node proposes a value and rounds end for all nodes at once. */
import { floodSet } from "./consensus/flood-set.ts";
import { interactiveConsistency, signedInteractiveConsistency } from "./consensus/interactive-consistency.ts";
import { lockstep } from "./consensus/lockstep/lockstep.ts";
import { entry, type RegistryEntry } from "./entry.ts";
import { consensusOfAll } from "./family.ts";
import { settled } from "./system.ts";

/** The value that each node proposes, if nodes start by themselves. */
const values = ["a", "b", "c", "d"];

export const lockstepRounds: Readonly<Record<string, RegistryEntry>> = {
  "flood-set": entry(
    consensusOfAll,
    "agreement under crashes in f + 1 synchronous rounds: all tell all what they know",
    floodSet,
    {
      variants: {
        bounded: {
          summary: "nodes propose when they start, for the checker",
          algorithm: settled(floodSet, { values }),
          ends: true,
        },
        "f-rounds": {
          summary: "the same with f rounds, one too few: f crashes divide the nodes",
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
    "every node brings a value, some lie, and all honest ones end with the same vector: N generals at once",
    interactiveConsistency,
    {
      variants: {
        signed: { summary: "with signed messages: any number of liars", algorithm: signedInteractiveConsistency },
        bounded: {
          summary: "nodes propose when they start, for the checker",
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
    "turns of a game: all commit to their actions before any reveals its own; who cheats is convicted by a proof",
    lockstep,
    {
      variants: {
        echo: {
          summary:
            "players show each other the commitments that they have, against different ones to different players",
          algorithm: settled(lockstep, { echoes: true }),
        },
        bounded: {
          summary: "with echoes, one turn that begins by itself and nothing asked for twice, for the checker",
          algorithm: settled(lockstep, { echoes: true, moves: ["rock", "paper"], turns: 1, resends: 0 }),
          ends: true,
        },
        "bounded-plain": {
          summary: "the same without echoes: who says different things to different players gets its look ahead",
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
