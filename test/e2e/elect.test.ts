/** Checks `coterie elect` on real processes. */
import { afterEach, describe, expect, test } from "vitest";
import { endAll, isAlive, until } from "./cluster-under-test.ts";
import { disorder, MembersUnderTest } from "./members-under-test.ts";

let members: MembersUnderTest;
afterEach(async () => {
  await endAll();
  members?.remove();
});

describe("how it ends", () => {
  const print = ["sh", "-c", 'echo "$COTERIE_NAME $COTERIE_TOKEN"; exit 9'];

  test("when the command ends, with its exit code", async () => {
    members = await MembersUnderTest.patient(1);
    await members.serveClients();
    const { code, stdout, stderr } = await members.start(1, "elect job", print).finished;
    expect({ code, stderr }).toEqual({ code: 9, stderr: "" });
    expect(stdout).toMatch(/^job [1-9]\d*\n$/);
  });

  test("not when leadership is lost: the command runs again, with a higher token", async () => {
    members = await MembersUnderTest.patient(1);
    await members.serveClients();
    const run = members.start(1, "elect job");
    const first = await members.successor();
    run.signal("SIGSTOP");
    await until("the command has exited", () => !isAlive(first.pid), run);
    run.signal("SIGCONT");
    const second = await members.successor(first.token);
    run.signal("SIGTERM");
    const { code, stderr } = await run.finished;
    // The witness exits with 0 on a signal. On a machine that was paused, leadership may be lost again at that moment.
    expect(code).toBe(members.sightings.some(({ what, pid }) => what === "told" && pid === second.pid) ? 0 : 128 + 15);
    expect(stderr).toContain("coterie: leadership of job was lost, and the command was stopped\n");
    expect(isAlive(second.pid)).toBe(false);
    expect(disorder(members.sightings)).toEqual([]);
  });

  test("when leadership is lost with --once", async () => {
    members = await MembersUnderTest.patient(1);
    await members.serveClients();
    const run = members.start(1, "elect job --once");
    const { pid } = await members.successor();
    run.signal("SIGSTOP");
    await until("the command has exited", () => !isAlive(pid), run);
    run.signal("SIGCONT");
    expect((await run.finished).code).toBe(76);
  });

  test("at once if there is no such command", async () => {
    members = await MembersUnderTest.patient(1);
    await members.serveClients();
    expect((await members.start(1, "elect job", ["no-such-command"]).finished).code).toBe(127);
  });
});
