/**
 * Ensures that `npm ci` works on any machine: the lockfile contains every tool binary for every platform, and no
 * registry address.
 */
import { describe, expect, it } from "vitest";
import { house } from "./house.ts";

type Lockfile = {
  readonly packages: Readonly<
    Record<string, { readonly version?: string; readonly optionalDependencies?: Readonly<Record<string, string>> }>
  >;
};

/**
 * Finds optional dependencies without an entry. npm leaves them out if its registry lacks the binaries of other
 * platforms, and then `npm ci` rejects the lockfile. An entry with version, os and cpu fixes that.
 */
function missing({ packages }: Lockfile): string[] {
  const locked = new Map(Object.entries(packages).map(([path, entry]) => [path.split("node_modules/").at(-1), entry]));
  return Object.values(packages)
    .flatMap(({ optionalDependencies = {} }) => Object.keys(optionalDependencies))
    .filter((name) => locked.get(name)?.version === undefined);
}

/** Finds dependencies with a fixed address instead of the registry that the user has configured. */
function addresses(text: string): string[] {
  return [...text.matchAll(/"resolved":\s*"([^"]*)"/g)].map((match) => match[1] ?? "");
}

describe("the lockfile", () => {
  const text = house.find(({ path }) => path === "package-lock.json")?.text ?? "";

  it("has an entry for every optional dependency", () => {
    expect(missing(JSON.parse(text) as Lockfile)).toEqual([]);
  });

  it("records no address", () => {
    expect(addresses(text)).toEqual([]);
  });

  it("a missing entry and an address are rejected", () => {
    const tool = { version: "1.0.0", optionalDependencies: { "tool-linux": "1.0.0", "tool-mac": "1.0.0" } };
    const packages = { "": {}, "node_modules/tool": tool, "node_modules/tool-linux": { version: "1.0.0" } };
    expect(missing({ packages })).toEqual(["tool-mac"]);
    expect(addresses('{ "resolved": "https://example.org/tool.tgz" }')).toEqual(["https://example.org/tool.tgz"]);
  });
});
