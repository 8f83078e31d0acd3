import { afterEach, describe, expect, it, vi } from "vitest";
import { dialFailure } from "./dial-failures.ts";
import { connect } from "./index.ts";
import { Refusals } from "./refusals.ts";

afterEach(() => vi.unstubAllGlobals());

describe("why no endpoint takes a client", () => {
  it("is said once where it is the same for all, and by endpoint otherwise, what members say first", () => {
    const refusals = new Refusals();
    expect(refusals.inWords([])).toBe("no answer");
    refusals.note("a", "it is refused", false);
    refusals.note("b", "it is refused", false);
    expect(refusals.inWords([])).toBe("it is refused");
    expect(refusals.inWords(["b", "c"])).toBe("a, b: it is refused; c: no answer");
    refusals.note("b", "no\n majority", true);
    expect(refusals.inWords([])).toBe("b: no majority; a: it is refused");
    refusals.clear();
    expect(refusals.inWords(["a"])).toBe("no answer");
  });

  it("is short, however many there are and whatever they say", () => {
    const refusals = new Refusals();
    for (let each = 0; each < 100; each++) refusals.note(`same ${each}`, "x".repeat(5_000), true);
    for (let each = 0; each < 100; each++) refusals.note(`other ${each}`, `y ${each}`, false);
    const text = refusals.inWords([]);
    expect(text).toMatch(/^same 0, same 1, same 2, same 3, and 96 more: x+…; other 0: y 0; .*; and 97 more$/);
    expect(text.length).toBeLessThan(600);
  });
});

describe("why there is no connection", () => {
  it.each([
    ["ENOTFOUND", "getaddrinfo ENOTFOUND db", "its name has no address (ENOTFOUND)"],
    ["EHOSTUNREACH", "connect EHOSTUNREACH 10.0.0.9:1", "there is no way to that machine (EHOSTUNREACH)"],
    ["ECONNRESET", "read ECONNRESET", "the connection was broken off (ECONNRESET)"],
    ["EMFILE", "connect EMFILE", "connect EMFILE"],
    [undefined, "Unexpected server response: 403", "what answers there takes no client (HTTP status 403)"],
  ])("with %s", (code, message, expected) => {
    const error: NodeJS.ErrnoException = Object.assign(new Error(message), code === undefined ? {} : { code });
    expect(dialFailure(error, "https://db:1")).toBe(expected);
  });
});

it("a browser does not say why a connection ended, so nobody is told more than that", async () => {
  let opens = false;
  class Socket {
    onopen = (): void => {};
    onclose = (): void => {};
    constructor() {
      setTimeout(() => {
        if (opens) this.onopen();
        this.onclose();
      });
    }
    send(): void {}
    close(): void {}
  }
  vi.stubGlobal("WebSocket", Socket);
  const place = { endpoints: ["http://10.0.0.1:7300"], timeoutMs: 200 };
  await expect(connect(place)).rejects.toThrow(/within 200 ms: no connection came about$/);
  opens = true;
  await expect(connect(place)).rejects.toThrow(/within 200 ms: the connection was closed$/);
});
