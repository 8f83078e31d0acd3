/** What channels of `join()` run over IP multicast, explored as the registry has it. */
import { describe, expect, test } from "vitest";
import { explore } from "../../../check/explore.ts";
import { systemFor } from "../../../check/suite.ts";
import { evenly } from "../ip-multicast/vocabulary.ts";

/** Every run of two nodes, of which these send one message each. */
const explored = (protocol: string, initiators: readonly number[], losses: number) =>
  explore(
    systemFor({
      protocol,
      variant: "over-ip-multicast",
      nodes: [0, 1],
      initiators,
      network: "bag",
      timers: "quiet",
      losses,
      duplications: 1,
      options: { multicast: { multicast: evenly } },
    }),
  );

describe("an order over IP multicast", () => {
  test.each([
    ["fifo", [0, 1], 1, 2_550],
    ["causal", [0, 1], 1, 2_550],
    ["isis", [0, 1], 0, 1_177],
    ["causal-total", [0, 1], 0, 1_347],
  ] as const)(
    "%s: keeps what it promises, whatever is lost of multicasts and doubled",
    (protocol, senders, losses, states) => {
      expect(explored(protocol, senders, losses)).toMatchObject({ verdict: "holds", states });
    },
  );

  /** Places are proposed to the sender alone, over a link: nobody asks again for what is lost there. */
  test.each(["isis", "causal-total"])("%s: needs reliable links beside it", (protocol) => {
    expect(explored(protocol, [0], 1).verdict).toBe("violated");
  });
});
