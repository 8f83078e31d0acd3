/**
 * What comes of what names say, wherever they are run: at what runs under a name, at messages that wait for an announcement, and at
 * the programs. Models have parts there; a member of `join()` is all three itself, and is given the same commands.
 */
import type { Tagged } from "../../../core/protocol.ts";
import type { WireTable } from "../../system.ts";
import type { Names } from "./vocabulary.ts";

/** The parts at the other ends. */
export interface NameEnds {
  /** Runs under the name: `begin`, `renew`, `end`; `giveUp` where it is run otherwise from now on. */
  readonly instance: string;
  /** Messages that wait, or are asked about: `joined`, `parted` (of any name where that is null), `admitted`. */
  readonly early: string;
  /** `consider` whether it goes here, `compare` with how it is run here; `ran`, `established`, `gone`, `refused`, `full`. */
  readonly program: string;
}

type Reactions = {
  readonly [E in Names["event"] as E["type"]]: (event: E, give: (part: string, command: Tagged) => void) => void;
};

export function nameWires({ instance, early, program }: NameEnds): WireTable {
  const names: Reactions = {
    wanted: (event, give) => give(program, { ...event, type: "consider" }),
    differs: (event, give) => give(program, { ...event, type: "compare" }),
    ran(event, give) {
      give(program, event);
      give(instance, { ...event, type: "begin" });
    },
    established: (event, give) => give(program, event),
    joined: (event, give) => give(early, event),
    parted: (event, give) => give(early, event),
    met: ({ node }, give) => give(early, { type: "parted", name: null, node } as Tagged),
    admitted: (event, give) => give(early, event),
    refused: (event, give) => give(program, event),
    noRoom: (event, give) => give(program, { ...event, type: "full" }),
    gaveWay({ name, by, why }, give) {
      give(program, { type: "gone", name } as Tagged);
      give(instance, { type: "giveUp", name, by, why } as Tagged);
    },
    agreed() {},
    putAway({ name }, give) {
      give(program, { type: "gone", name } as Tagged);
      give(instance, { type: "end", name } as Tagged);
    },
    renewed: (event, give) => give(instance, { ...event, type: "renew" }),
  };
  return { names };
}
