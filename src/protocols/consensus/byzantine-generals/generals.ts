/** What both algorithms of the generals share: who commands, what missing messages stand for, and what loyal generals owe each other. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { NodeId, Property, Vocabulary, World } from "../../../core/protocol.ts";
import { natural, nullable, oneOf, text } from "../../../core/shape.ts";
import { type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";

export const orderShape = text(1_000);

/** What algorithms of rounds of generals share. */
export const roundOptions = {
  m: option(
    nullable(natural),
    null,
    "the algorithm has m + 1 rounds and tolerates m traitors; `null`: as many as N nodes can tolerate",
  ),
  ties: option(
    oneOf("default", "heard"),
    "default",
    "with oral messages, the value without a majority: a default, or the value that the node received itself",
  ),
  roundMs: positive(100, "the length of a round, longer than any message travels"),
};

export const generalsOptions = optionTable("generals", {
  commander: whole(0, "the node that gives the order"),
  order: option(nullable(orderShape), "attack", "the order, as `--order`; `null`: the one in the command `order`"),
  missing: option(orderShape, "retreat", "the order that is assumed if none arrives"),
  ...roundOptions,
});

export type GeneralsOptions = OptionsOf<typeof generalsOptions>;

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
