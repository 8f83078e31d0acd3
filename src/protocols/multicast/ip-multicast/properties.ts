/** What ip-multicast declares: where it was published, what it assumes, promises and costs, and how it looks. */
import type { NodeId, Property, Protocol, World } from "../../../core/protocol.ts";
import { eventually } from "../parts/eventually.ts";
import { covers } from "../parts/group.ts";
import { heldIds } from "../parts/held.ts";
import { type IpMulticastOptions, reachOf } from "./options.ts";
import { type IpMulticast, type Place, receivedOf, receivedVector, type State } from "./vocabulary.ts";

type Group<P> = World<State<P>>;

/** Pairs of nodes that are in the same view. */
function everyPair<P>({ alive, state }: Group<P>, holds: (a: State<P>, b: State<P>) => boolean): boolean {
  const inside = alive.map((node) => state(node)).filter(({ phase }) => phase !== "outside");
  return inside.every((a) => inside.every((b) => a.view !== b.view || holds(a, b)));
}

function properties<P>({ sessions, ...bounds }: IpMulticastOptions): Property<IpMulticast<P>>[] {
  const isWhole = ({ streams }: State<P>): boolean => streams.every(({ delivered, known }) => delivered === known);
  return [
    {
      name: "integrity",
      claim: "nobody has delivered more of a member's messages than it has sent",
      when: "always",
      holds: (world) =>
        everyPair<P>(world, (a, sender) => (a.streams[sender.me]?.delivered ?? 0) <= receivedOf(sender, sender.me)),
    },
    {
      name: "validity",
      claim: "a sender has delivered all that it has multicast",
      when: "always",
      holds: ({ alive, state }) =>
        alive.every((node) => {
          const of: State<P> = state(node);
          return (of.streams[of.me]?.delivered ?? 0) === receivedOf(of, of.me);
        }),
    },
    eventually(
      "agreement",
      "then or later, everybody in a view has delivered what anybody in it has received, and lacks nothing it knows of",
      ({ alive, state }, node) => {
        const one: State<P> = state(node);
        return (
          one.phase !== "open" ||
          (isWhole(one) &&
            alive.every((id) => {
              const other: State<P> = state(id);
              return (
                other.phase === "outside" ||
                other.view !== one.view ||
                covers(receivedVector(one), receivedVector(other))
              );
            }))
        );
      },
    ),
    {
      name: "bounded buffers",
      claim:
        "nobody keeps more than a window of anybody's messages, and no more wait than may; while the group changes, twice what may be in the window and wait",
      when: "always",
      holds: ({ alive, state }) =>
        alive.every((node: NodeId) => {
          const { phase, streams, waiting }: State<P> = state(node);
          // While the group changes, what it was told to fill is kept beyond what it had received.
          const most = phase === "open" ? bounds.windowMessages : 2 * reachOf(bounds);
          return waiting.length <= bounds.maxWaiting && streams.every(({ kept }) => kept.length <= most);
        }),
    },
    ...(sessions
      ? [
          eventually<IpMulticast<P>>(
            "stability",
            "nobody keeps anything for ever, unless the group is about to change: all come to know that all have it",
            ({ state }, node) => {
              const { phase, streams }: State<P> = state(node);
              return phase !== "open" || streams.every(({ kept }) => kept.length === 0);
            },
          ),
        ]
      : []),
  ];
}

/** Received and not delivered, by sender. */
const heldBack = <P>({ streams }: State<P>): Place[] =>
  streams.flatMap(({ kept, freed, delivered }, sender) =>
    kept.slice(delivered - freed).flatMap((each, i) => (each === null ? [] : [{ sender, number: delivered + 1 + i }])),
  );

export function declarations<P>(
  options: IpMulticastOptions,
): Pick<Protocol<IpMulticast<P>>, "source" | "assumes" | "properties" | "costs" | "view"> {
  return {
    source: "Coulouris et al. §15.4.2; Floyd et al., IEEE/ACM ToN 1997",
    assumes: ["no crashes, or views beside it", "datagrams may be lost, doubled and overtaken, but not for ever"],
    properties: properties(options),
    costs: [
      { when: "one multicast", messages: (nodes) => nodes - 1 },
      { when: "everybody's acknowledgement, after a pause", messages: (nodes) => (nodes - 1) ** 2 },
    ],
    view(state) {
      const { phase, waiting, view } = state;
      const back = heldBack(state);
      const role =
        phase !== "open"
          ? phase
          : back.length > 0
            ? "holding back"
            : waiting.length > 0
              ? "waiting for room"
              : "up to date";
      return { role, term: view, held: heldIds(back, ({ sender, number }) => `${state.members[sender]}.${number}`) };
    },
  };
}
