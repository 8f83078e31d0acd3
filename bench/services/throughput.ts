/** Sections `locks` and `sends`: how many a second, and how long one takes. */
import { channelKinds } from "./asks.ts";
import { quantile, Rows } from "./figures.ts";
import type { Group } from "./group.ts";
import type { Run } from "./run.ts";

const CLIENTS = 16;
const FIRST_SENDS = 5;

export async function locks(group: Group, { rounds, ms, progress }: Run): Promise<Rows> {
  const rows = new Rows("locks");
  const leader = (await group.settled()).leader as number;
  const others = group.ids.filter((id) => id !== leader);
  const perSecond = async (places: readonly number[], clientsOf: (at: number) => number): Promise<number> => {
    const asks = places.map((id, at) => group.ask(id, { ask: "pairs", clients: clientsOf(at), ms }));
    return (await Promise.all(asks)).reduce((sum, { pairs }) => sum + pairs, 0) / (ms / 1_000);
  };
  const ways: readonly [string, readonly number[], (at: number) => number][] = [
    ["one client, at the leader of the log", [leader], () => 1],
    ["one client, in another process", others.slice(0, 1), () => 1],
    [`${CLIENTS} clients, in another process`, others.slice(0, 1), () => CLIENTS],
    [
      `${CLIENTS} clients, over three processes`,
      group.ids,
      (at) => Math.floor(CLIENTS / 3) + (at < CLIENTS % 3 ? 1 : 0),
    ],
  ];
  for (let round = 0; round <= rounds; round++) {
    for (const [way, places, clientsOf] of ways) {
      progress(`locks, round ${round} of ${rounds}: ${way}`);
      const figure = await perSecond(places, clientsOf);
      if (round > 0) rows.add(way, "pairs/s", figure); // The first warms up.
    }
  }
  return rows;
}

/** The sender is another member in each round, since in some orders one member decides. */
export async function sends(group: Group, { rounds, ms, progress }: Run): Promise<Rows> {
  const rows = new Rows("sends");
  for (let round = 0; round <= rounds; round++) {
    const sender = group.ids[round % group.ids.length] as number;
    for (const kind of channelKinds) {
      progress(`sends, round ${round} of ${rounds}: ${kind}`);
      const name = `${kind}-${round}`;
      await group.all({ ask: "open", name, kind });
      await group.ask(sender, { ask: "send-one-by-one", name, kind, ms: ms / 4 }); // Warms up.
      const { tookMs } = await group.ask(sender, { ask: "send-one-by-one", name, kind, ms });
      const { perSecond } = await group.ask(sender, { ask: "send-many", name, kind, ms });
      await group.all({ ask: "close", name, kind });
      if (round === 0) continue;
      rows.add(`${kind}, one at a time, median`, "ms", quantile(tookMs, 0.5));
      rows.add(`${kind}, one at a time, p99`, "ms", quantile(tookMs, 0.99));
      rows.add(`${kind}, in bulk, one sender`, "messages/s", perSecond);
    }
  }
  await firstSends(group, rows, { rounds, progress });
  return rows;
}

async function firstSends(group: Group, rows: Rows, { rounds, progress }: Omit<Run, "ms">): Promise<void> {
  for (let round = 0; round < rounds * FIRST_SENDS; round++) {
    const sender = group.ids[round % group.ids.length] as number;
    for (const kind of channelKinds) {
      progress(`sends, first on a new channel, ${round + 1} of ${rounds * FIRST_SENDS}: ${kind}`);
      const name = `first-${kind}-${round}`;
      const { tookMs } = await group.ask(sender, { ask: "send-first", name, kind });
      await group.ask(sender, { ask: "close", name, kind });
      rows.add(`${kind}, first on a new channel`, "ms", tookMs);
    }
  }
}
