import { createServer } from "node:net";
import { expect, test } from "vitest";
import { claimOf, END, FIRST, freePorts, REFUSED_BY_FETCH } from "./free-ports.ts";

test.runIf(process.platform === "linux")("chooses no port that another process has claimed", async () => {
  const [port = 0] = await freePorts(1);
  const claimed = [port + 1, port + 2].filter((each) => each < END);
  const others = claimed.map((each) => createServer().listen(claimOf(each)));
  // A port may already be claimed, for example by tests of a different checkout. It counts as claimed too.
  await Promise.all(
    others.map((other) => new Promise((done) => void other.once("listening", done).once("error", done))),
  );
  const found = await freePorts(20);
  for (const other of others) other.close();
  expect(new Set(found).size).toBe(20);
  for (const each of claimed) expect(found).not.toContain(each);
});

test("chooses no port that fetch rejects", { tags: ["long"] }, async () => {
  const refused: number[] = [];
  for (let port = FIRST; port < END; port++)
    // No server listens on this port. `fetch` rejects it without connecting, so it does not disturb members of other
    // tests.
    await fetch(`http://[::1]:${port}`, { signal: AbortSignal.timeout(1_000) }).catch((error: unknown) => {
      if (((error as Error).cause as Error | undefined)?.message === "bad port") refused.push(port);
    });
  expect(refused).toEqual([...REFUSED_BY_FETCH]);
});
