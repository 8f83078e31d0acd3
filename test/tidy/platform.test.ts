/**
 * Ensures that a member takes time, timers, randomness, network and disk from its `Platform`, so that it runs unchanged
 * on a simulated one.
 */
import { builtinModules } from "node:module";
import { Visitor } from "vite";
import { describe, expect, it } from "vitest";
import { code, type HouseFile, importsOf, isTest, lineAt, parsed, targetOf } from "./house.ts";
import { reaches } from "./reaches.ts";

const ABOVE = /^src\/(runtime|cluster\/services|cluster\/join\.ts)/;
const PLATFORM = "src/runtime/platform/";

const FORBIDDEN = new Set(
  "Date performance setTimeout setInterval setImmediate clearTimeout clearInterval process crypto fetch".split(" "),
);

/** Functions that depend only on their arguments. */
const PURE: Readonly<Record<string, readonly string[]>> = {
  "node:buffer": ["isAscii"],
  "node:crypto": ["createCipheriv", "createDecipheriv", "hkdfSync", "KeyObject", "sign", "verify"],
  "node:events": ["setMaxListeners"],
  "node:net": ["BlockList", "isIP", "isIPv4", "isIPv6"],
  "node:path": ["join"],
  "node:zlib": ["crc32"],
};

/** Optional servers that need a network. Members on a simulated platform do not have them. */
const ADMIN_PAGES = "the admin pages and the pages of clients: HTTP for people and programs";
const FILES = "certificates and keys are files of a real machine: members on a simulated platform have none";
const HOSTED = "host() runs on the real platform alone";
const EXCEPTIONS: Readonly<Record<string, string>> = {
  "src/runtime/certificate-files.ts": FILES,
  "src/runtime/member-keys.ts": FILES,
  "src/runtime/node.ts": HOSTED,
  "src/runtime/http-listener.ts": ADMIN_PAGES,
  "src/runtime/broadcast.ts": ADMIN_PAGES,
  "src/cluster/services/member-pages.ts": ADMIN_PAGES,
  "src/cluster/services/sessions.ts": ADMIN_PAGES,
  "src/cluster/services/session-clock.ts": ADMIN_PAGES,
  "src/runtime/package-files.ts": "the files of the package are the same under any platform",
  "src/runtime/log.ts": "createLog() is called before there is a member; join() gives its own log the platform's clock",
  "src/cluster/services/membership.ts": "the default log writes to stderr, and paths begin at the working directory",
};

function bypasses(file: HouseFile): string[] {
  const found = reaches(file, FORBIDDEN);
  const note = (source: string, offset: number, names: readonly string[]): void => {
    const isNode = builtinModules.includes(source.replace(/^node:/, ""));
    const pure = PURE[source] ?? [];
    if (isNode && (names.length === 0 || !names.every((name) => pure.includes(name))))
      found.push(`${file.path}:${lineAt(file.text, offset)} imports ${names.join(", ")} from ${source}`);
  };
  new Visitor({
    ImportDeclaration({ source, specifiers, start }) {
      const names = specifiers.map((each) =>
        each.type === "ImportSpecifier" && each.imported.type === "Identifier" ? each.imported.name : "*",
      );
      note(source.value, start, names);
    },
    ImportExpression: ({ source, start }) => note(source.type === "Literal" ? String(source.value) : "", start, []),
    MemberExpression({ object, property, start }) {
      const isTimed = object.type === "Identifier" && object.name === "AbortSignal";
      if (isTimed && property.type === "Identifier" && property.name === "timeout")
        found.push(`${file.path}:${lineAt(file.text, start)} uses AbortSignal.timeout`);
    },
  }).visit(parsed(file).program);
  return found;
}

describe("above the platform", () => {
  const above = code.filter(({ path }) => ABOVE.test(path) && !path.startsWith(PLATFORM) && !isTest(path));
  const held = above.filter(({ path }) => EXCEPTIONS[path] === undefined);

  it("no file reads a clock, draws random numbers or opens a socket or a file by itself", () => {
    expect(held.flatMap(bypasses)).toEqual([]);
  });

  it("only join() names the real platform", () => {
    const naming = held.flatMap((file) =>
      importsOf(file)
        .map(({ specifier }) => targetOf(file.path, specifier) ?? "")
        .filter((target) => target.startsWith(PLATFORM) && !/\/(platform|sleep)\.ts$/.test(target))
        .map((target) => `${file.path} imports ${target}`),
    );
    expect(naming).toEqual([`src/cluster/join.ts imports ${PLATFORM}real.ts`]);
  });

  it("every exception is needed", () => {
    const needless = Object.keys(EXCEPTIONS).filter((excepted) => {
      const file = above.find(({ path }) => path === excepted);
      return file === undefined || bypasses(file).length === 0;
    });
    expect(needless).toEqual([]);
  });

  it.each([
    'import { connect } from "node:net";',
    'import { randomUUID } from "node:crypto";',
    'import { setTimeout as sleep } from "node:timers/promises";',
    'import * as net from "node:net";',
    'import type { Socket } from "node:net";',
    'const { rm } = await import("node:fs/promises");',
    "export const now = () => performance.now();",
    "const began = Date.now();",
    "setImmediate(() => {});",
    "const die = () => Math.random();",
    "process.nextTick(() => {});",
    "const late = AbortSignal.timeout(5);",
  ])("%s is rejected", (text) => {
    expect(bypasses({ path: "src/runtime/a.ts", text })).not.toEqual([]);
  });
});
