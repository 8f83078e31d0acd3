import { describe, expect, it } from "vitest";
import type { CommandOf, Context, EventOf, NodeId } from "../../../../core/protocol.ts";
import { dispatch } from "../../../../core/step.ts";
import { transfer } from "./transfer.ts";
import { beforeWordsOf, type Standing, type Transfer } from "./vocabulary.ts";

/** Node 4 by itself: what the order would deliver is delivered by the test. */
function member() {
  const protocol = transfer<string>("outside");
  const state = protocol.init(4, [1]);
  const events: EventOf<Transfer<string>>[] = [];
  const ctx = {
    self: 4,
    peers: [1],
    send: () => {},
    setTimer: () => {},
    cancelTimer: () => {},
    emit: (event: EventOf<Transfer<string>>) => void events.push(event),
  } as never as Context<Transfer<string>>;
  const tell = (command: CommandOf<Transfer<string>>) => {
    events.length = 0;
    dispatch(protocol, state, { kind: "command", command }, ctx);
    return [...events];
  };
  return {
    install: (view: number, ...members: NodeId[]) => tell({ type: "install", view, members }),
    seek: () => tell({ type: "seek" }),
    hear: (from: NodeId, number: number, is: Standing) =>
      tell({
        type: "deliver",
        from,
        payload: { type: "standing", number, is, place: 0, waitingSince: { view: 0, place: 0 } },
        id: "",
      }),
    standing: () => state.standing,
  };
}
const word = (view: number, place: number): number => beforeWordsOf(view) + place;
const says = (number: number, is: Standing) => ({
  type: "say",
  payload: { type: "standing", number, is, place: 0, waitingSince: expect.anything() },
});

describe("words on how a member stands", () => {
  it("that are delivered in a later view than they were said in do not count: a member that has founded since is asked", () => {
    const { install, seek, hear, standing } = member();
    seek();
    expect(install(7, 1, 4)).toContainEqual(says(word(7, 1), "seeking"));
    expect(install(8, 4)).toContainEqual(says(word(8, 1), "seeking"));
    hear(4, word(7, 1), "seeking");
    expect(standing()).toBe("seeking");
    hear(4, word(8, 1), "seeking");
    expect(standing()).toBe("holding");
    install(9, 1, 4);
    hear(4, word(8, 2), "seeking"); // On its way when the view changed.
    expect(hear(1, word(9, 1), "seeking")).toEqual([says(word(9, 1), "holding")]);
    expect(standing()).toBe("holding");
    expect(hear(4, word(9, 1), "holding")).toContainEqual(expect.objectContaining({ type: "wanted", view: 9 }));
  });
});
