/** Checks how `coterie node` handles a signal while it is starting. test/e2e/node.test.ts runs the whole command. */
import { EventEmitter } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { coterie } from "../../../test/commands/run-here.ts";
import { CoordinationError } from "../../cluster/services/coordination-error.ts";
import { EnvironmentError, UsageError } from "../../core/errors.ts";
import { cannotListen } from "../../runtime/cannot-listen.ts";
import { ExitWith } from "../output.ts";
import { startedBefore, unreported, whenToStop } from "./node.ts";
import { blameTheCaller } from "./own-member.ts";

test.each(["SIGTERM", "SIGINT", "SIGHUP"])("%s during a start that does not end leaves no member", async (signal) => {
  const signals = new EventEmitter();
  const { ended } = whenToStop(false, signals);
  signals.emit(signal, signal); // Emit it as Node does.
  expect(await startedBefore(ended, new Promise<never>(() => {}))).toBeNull();
});

test("a start that completes after the signal is stopped in order, and a failed one is ignored", async () => {
  let stops = 0;
  let start = (): void => {};
  const starting = new Promise<{ stop(): Promise<void> }>((resolve) => {
    start = () =>
      resolve({
        stop() {
          stops += 1;
          return Promise.resolve();
        },
      });
  });
  const left = startedBefore(Promise.resolve(), starting);
  setImmediate(start);
  expect([await left, stops]).toEqual([null, 1]);
  expect(await startedBefore(Promise.resolve(), new Promise<never>((_, reject) => setTimeout(reject)))).toBeNull();
});

test.each(["EADDRINUSE", "EADDRNOTAVAIL", "EACCES", "ENOTFOUND"])(
  "an address that may be available soon (%s) is not the caller's mistake, so supervisors try again",
  (code) => {
    const error = cannotListen({ host: "10.0.0.1", port: 7_100 }, "", Object.assign(new Error("no"), { code }));
    expect(() => blameTheCaller(error)).toThrow(error);
  },
);

test("a file that cannot be read is the caller's mistake", () => {
  const cause = Object.assign(new Error("no"), { code: "ENOENT" });
  expect(() => blameTheCaller(new EnvironmentError("cannot-read", "no such file", { cause }))).toThrow(UsageError);
});

test("an error that the member's log has reported is not printed again", () => {
  const removed = new CoordinationError("member-removed", "lost", "member 3 of x has been removed");
  expect(unreported(removed)).toMatchObject({ exitCode: 1, message: "" });
  expect(unreported(removed)).toBeInstanceOf(ExitWith);
  const other = new Error("the port is taken");
  expect(unreported(other)).toBe(other);
});

test("--clients off loopback needs --client-roles", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coterie-node-"));
  const config = join(folder, "cluster.json");
  const dataDir = "journal-{id}";
  writeFileSync(config, JSON.stringify({ cluster: "x", dataDir, members: { 1: "127.0.0.1:7401" } }));
  try {
    expect(await coterie("node", "--config", config, "--id", "1", "--clients", "192.0.2.2:7300")).toEqual({
      code: 2,
      stdout: "",
      stderr:
        'coterie: expected --clients to be a loopback address without --client-roles, got "192.0.2.2:7300": to serve a network, add --client-roles FILE\n',
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a start that fails before a signal rejects with the reason", async () => {
  const failing = Promise.reject(new Error("the port is taken"));
  await expect(startedBefore(new Promise(() => {}), failing)).rejects.toThrow("the port is taken");
});
