/**
 * Runs the example of each engine's page as printed, with the packed tarball and the page's list of dependencies.
 * @module-tag long
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import requireFreshBuild from "../../fresh-build.ts";
import { PackedUsers } from "./docs-examples.ts";
import { realEngines } from "./engines.ts";
import { EngineServer } from "./servers.ts";

let users: PackedUsers;
beforeAll(async () => {
  requireFreshBuild(); // The build is packed.
  users = await PackedUsers.install();
});
afterAll(() => users?.remove());

describe.each(realEngines)("$name", ({ title, server: kind }) => {
  let server: EngineServer;
  beforeAll(async () => {
    server = await EngineServer.start(kind);
  });
  afterAll(() => server?.remove());

  it("runs the example of its page as printed, with the packed tarball and the dependencies on the page", async () => {
    const { printed, expected } = await users.runExample(title, server.port);
    expect(printed).toBe(expected);
    expect(expected).not.toBe("");
    const without = await users.runWithout(title, server.port);
    if (without !== null)
      expect(without.error).toMatch(new RegExp(`no-library.*npm install ${without.needed[0]}`, "s"));
  });
});
