import { expect, test } from "vitest";
import { END, FIRST, REFUSED_BY_FETCH } from "./free-ports.ts";

test("no port is chosen that fetch refuses to ask", { tags: ["long"] }, async () => {
  const refused: number[] = [];
  for (let port = FIRST; port < END; port++)
    await fetch(`http://127.0.0.1:${port}`, { signal: AbortSignal.timeout(1_000) }).catch((error: unknown) => {
      if (((error as Error).cause as Error | undefined)?.message === "bad port") refused.push(port);
    });
  expect(refused).toEqual([...REFUSED_BY_FETCH]);
});
