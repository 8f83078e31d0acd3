import { createServer } from "node:net";
import { expect, test } from "vitest";
import { claimOf, END, FIRST, freePorts, REFUSED_BY_FETCH } from "./free-ports.ts";

test.runIf(process.platform === "linux")("no port is chosen that another process has claimed", async () => {
  const [port = 0] = await freePorts(1);
  const claimed = [port + 1, port + 2].filter((each) => each < END);
  const others = claimed.map((each) => createServer().listen(claimOf(each)));
  // One that somebody has claimed already, as tests of another checkout do, is claimed as well.
  await Promise.all(
    others.map((other) => new Promise((done) => void other.once("listening", done).once("error", done))),
  );
  const found = await freePorts(20);
  for (const other of others) other.close();
  expect(new Set(found).size).toBe(20);
  for (const each of claimed) expect(found).not.toContain(each);
});

test("no port is chosen that fetch refuses to ask", { tags: ["long"] }, async () => {
  const refused: number[] = [];
  for (let port = FIRST; port < END; port++)
    // Where nobody listens: it is refused before it is asked, and members of other tests are not to be asked.
    await fetch(`http://[::1]:${port}`, { signal: AbortSignal.timeout(1_000) }).catch((error: unknown) => {
      if (((error as Error).cause as Error | undefined)?.message === "bad port") refused.push(port);
    });
  expect(refused).toEqual([...REFUSED_BY_FETCH]);
});
