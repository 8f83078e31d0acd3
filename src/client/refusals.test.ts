import { afterEach, describe, expect, it, vi } from "vitest";
import { dialFailure } from "./dial-failures.ts";
import { connect } from "./index.ts";
import { Refusals } from "./refusals.ts";

afterEach(() => vi.unstubAllGlobals());

describe("reasons why no endpoint accepts a client", () => {
  it("are given once if all share one, otherwise by endpoint, with members' reasons first", () => {
    const refusals = new Refusals();
    const all = ["a", "b", "c"];
    expect(refusals.inWords(all, [])).toBe("no answer");
    refusals.note("b", "it is refused", false);
    refusals.note("a", "it is refused", false);
    expect(refusals.inWords(all, [])).toBe("it is refused");
    expect(refusals.inWords(all, ["b", "c"])).toBe("a, b: it is refused; c: no answer");
    refusals.note("b", "no\n majority", true);
    expect(refusals.inWords(all, [])).toBe("b: no majority; a: it is refused");
    // No member serves clients at the other endpoint anymore.
    expect(refusals.inWords(["a", "c"], [])).toBe("it is refused");
    refusals.clear();
    expect(refusals.inWords(all, ["a"])).toBe("no answer");
  });

  it("are short, no matter how many and how long they are", () => {
    const refusals = new Refusals();
    const named = (what: string): string[] => Array.from({ length: 100 }, (_, each) => `${what} ${each}`);
    for (const same of named("same")) refusals.note(same, "x".repeat(5_000), true);
    for (const other of named("other")) refusals.note(other, other.replace("other", "y"), false);
    const text = refusals.inWords([...named("other"), ...named("same")], []);
    expect(text).toMatch(/^same 0, same 1, same 2, same 3, and 96 more: x+…; other 0: y 0; .*; and 97 more$/);
    expect(text.length).toBeLessThan(600);
  });
});

describe("reasons for failed connections", () => {
  it.each([
    ["ENOTFOUND", "getaddrinfo ENOTFOUND db", "its host name does not resolve (ENOTFOUND)"],
    ["EHOSTUNREACH", "connect EHOSTUNREACH 10.0.0.9:1", "no route to that machine (EHOSTUNREACH)"],
    ["ECONNRESET", "read ECONNRESET", "the connection broke (ECONNRESET)"],
    ["EMFILE", "connect EMFILE", "connect EMFILE"],
    [undefined, "Unexpected server response: 403", "the server does not accept clients (HTTP status 403)"],
  ])("with %s", (code, message, expected) => {
    const error: NodeJS.ErrnoException = Object.assign(new Error(message), code === undefined ? {} : { code });
    expect(dialFailure(error, "https://db:1")).toBe(expected);
  });
});

it("a browser gives no reason for a closed connection, so the error has none", async () => {
  let opens = false;
  class Socket {
    onopen: (() => void) | null = null;
    onclose: (() => void) | null = null;
    constructor() {
      setTimeout(() => {
        if (opens) this.onopen?.();
        this.onclose?.(); // Not called for an abandoned connection.
      });
    }
    send(): void {}
    close(): void {}
  }
  vi.stubGlobal("WebSocket", Socket);
  const place = { endpoints: ["http://10.0.0.1:7300"], timeoutMs: 200 };
  await expect(connect(place)).rejects.toThrow(/within 200 ms: no connection was established$/);
  opens = true;
  await expect(connect(place)).rejects.toThrow(/within 200 ms: the connection was closed$/);
});
