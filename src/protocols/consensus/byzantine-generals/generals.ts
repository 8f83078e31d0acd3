/** What both algorithms of the generals share: who commands, what missing messages stand for, and what loyal generals owe each other. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { NodeId, Property, Vocabulary, World } from "../../../core/protocol.ts";
import { natural, nullable, oneOf, real, struct, text } from "../../../core/shape.ts";
import { requirePositive, settle } from "../../options.ts";

export const orderShape = text(1_000);

export interface GeneralsOptions {
  commander: NodeId;
  /** What the commander orders when it is asked to. Null: what it is asked to order. */
  order: string | null;
  /** What an order that did not arrive stands for: RETREAT in the paper. */
  missing: string;
  /** There are m + 1 rounds, which stand m traitors. Null: as many as the algorithm can stand among so many generals. */
  m: number | null;
  /** Oral messages: where no order has a majority, the default is obeyed, or what the general itself has heard. */
  ties: "default" | "heard";
  /** A round ends after this time, which is longer than any message travels. */
  roundMs: number;
}

const defaults: GeneralsOptions = {
  commander: 0,
  order: "attack",
  missing: "retreat",
  m: null,
  ties: "default",
  roundMs: 100,
};

const optionShape = struct<GeneralsOptions>({
  commander: natural,
  order: nullable(orderShape),
  missing: orderShape,
  m: nullable(natural),
  ties: oneOf("default", "heard"),
  roundMs: real,
});

export function generalsOptions(given: Partial<GeneralsOptions> | undefined): GeneralsOptions {
  const options = settle(defaults, optionShape, given, "generals");
  requirePositive("generals.roundMs", options.roundMs);
  return options;
}

/** @throws UsageError if the commander is none of the generals. */
export function requireCommander({ commander }: GeneralsOptions, self: NodeId, peers: readonly NodeId[]): void {
  if (commander !== self && !peers.includes(commander))
    throw new UsageError(
      "bad-option",
      unexpected("generals.commander", `among ${[self, ...peers].join(", ")}`, commander),
    );
}

/** What a general's state says to the properties. */
export interface Deciding {
  /** What the commander has ordered; null: nothing, or it is none. */
  ordered: string | null;
  decided: string | null;
}

type Generals = Vocabulary & { state: Deciding; timer: "round" };

/** IC1 and IC2 of Lamport, Shostak & Pease 1982. Where generals lie, the properties speak of the loyal ones. */
export function loyalty<V extends Generals>({ commander }: GeneralsOptions): Property<V>[] {
  const decisions = ({ alive, state }: World<Deciding>): string[] =>
    alive.flatMap((node) => (node === commander ? [] : (state(node).decided ?? [])));
  const isOver = ({ alive, state }: World<Deciding>): boolean => alive.every((node) => state(node).decided !== null);
  return [
    {
      name: "IC1 agreement",
      claim: "all loyal lieutenants obey the same order",
      when: "always",
      holds: (world: World<Deciding>) => new Set(decisions(world)).size <= 1,
    },
    {
      name: "IC2 validity",
      claim: "every loyal lieutenant obeys the order that a loyal commander has sent",
      when: "always",
      holds(world: World<Deciding>) {
        const ordered = world.alive.includes(commander) ? world.state(commander).ordered : null;
        return ordered === null || decisions(world).every((decided) => decided === ordered);
      },
    },
    {
      name: "termination",
      claim: "when the last round is over, every loyal general has decided",
      when: "quiescent",
      pendingTimers: ["round"],
      holds: isOver,
    },
  ] as Property<V>[];
}
