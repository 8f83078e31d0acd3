/** Which way `coterie lock` and `coterie elect` take to the cluster, as the one address of several that is complained of tells. */
import { afterEach, expect, test, vi } from "vitest";
import { type AccessOptions, accessFor } from "./access-options.ts";

afterEach(() => void vi.unstubAllEnvs());

const WAYS =
  "expected --endpoints URLS (or $COTERIE_ENDPOINTS), where members serve clients; or --member URL (or $COTERIE_MEMBER), a member on this machine; or --id N, to be a member: docs/lock-and-elect.md";

test.each<[what: string, options: Partial<AccessOptions>, member: string, endpoints: string, said: string | RegExp]>([
  ["nothing", {}, "", "", WAYS],
  ["$COTERIE_ENDPOINTS", {}, "", "ftp://of-variable", /of-variable/],
  ["$COTERIE_MEMBER before it", {}, "of-member", "ftp://of-variable", /COTERIE_MEMBER .*of-member/],
  ["--endpoints before both", { endpoints: "ftp://given" }, "of-member", "ftp://of-variable", /given/],
  ["--id before both", { id: 1, config: "/none/given.json" }, "of-member", "ftp://of-variable", /given\.json/],
  ["--config without --id", { config: "/none/given.json" }, "of-member", "ftp://of-variable", WAYS],
])("%s", async (_what, options, member, endpoints, said) => {
  vi.stubEnv("COTERIE_MEMBER", member);
  vi.stubEnv("COTERIE_ENDPOINTS", endpoints);
  await expect(accessFor({ grace: 100, ...options })).rejects.toThrow(said);
});

test("--member before $COTERIE_ENDPOINTS", async () => {
  vi.stubEnv("COTERIE_ENDPOINTS", "ftp://of-variable");
  const access = await accessFor({ grace: 100, member: "http://127.0.0.1:7501" }); // It is called with the first name.
  await access.leave();
});
