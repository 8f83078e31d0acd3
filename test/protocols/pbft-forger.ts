/** A PBFT replica that forges the proofs of a view change: new-view messages, and certificates in view changes. */
import type { NodeId, Tagged } from "../../src/core/protocol.ts";
import { idealSignatures, sign } from "../../src/core/signatures.ts";
import type { ByzantineBehaviour } from "../../src/protocols/byzantine.ts";
import { NOTHING, prePrepareShape, viewChangeShape } from "../../src/protocols/consensus/pbft/certificates.ts";
import type { Assignment, Certificate, NewView, Pbft } from "../../src/protocols/consensus/pbft/vocabulary.ts";

type Message = Pbft["message"];

/**
 * Returns forgeries of messages, by name. Every signature in a forged message is the forger's own or one that it has
 * received.
 */
export function forgeries(liar: NodeId): Readonly<Record<string, (message: Message) => Message | null>> {
  const signer = { self: liar, signatures: idealSignatures(liar) };
  const nothing = (value: Assignment) => sign(signer, prePrepareShape, { ...value, digest: NOTHING });
  const newView = (change: (view: NewView) => Partial<NewView>) => (message: Message) =>
    message.type === "newView" ? { ...message, ...change(message) } : null;
  const certificate =
    (change: (certificate: Certificate) => Partial<Certificate>) =>
    (message: Message): Message | null => {
      if (message.type !== "viewChange" || message.viewChange.value.prepared.length === 0) return null;
      const { value } = message.viewChange;
      const prepared = value.prepared.map((each) => ({ ...each, ...change(each) }));
      return { ...message, viewChange: sign(signer, viewChangeShape, { ...value, prepared }) };
    };
  const doubled = <T>([first, ...others]: readonly T[]): T[] =>
    first === undefined ? [] : [first, first, ...others.slice(1)];
  return {
    "a new view without prepared batches": newView(({ prePrepares }) => ({
      prePrepares: prePrepares.map(({ value }) => nothing(value)),
    })),
    "a new view that stops short": newView(({ prePrepares }) => ({ prePrepares: prePrepares.slice(1) })),
    "a new view of 2f view changes": newView(({ viewChanges }) => ({ viewChanges: viewChanges.slice(1) })),
    "a new view of one view change twice": newView(({ viewChanges }) => ({ viewChanges: doubled(viewChanges) })),
    "a certificate of 2f": certificate(({ prepares }) => ({ prepares: prepares.slice(1) })),
    "a certificate with one prepare twice": certificate(({ prepares }) => ({ prepares: doubled(prepares) })),
    "a certificate for another batch": certificate(({ prePrepare }) => ({ prePrepare: nothing(prePrepare.value) })),
    "a certificate signed in another's name": certificate(({ prePrepare, prepares }) => {
      const value = { ...prePrepare.value, digest: NOTHING };
      return {
        prePrepare: { ...prePrepare, value },
        prepares: prepares.map((each) => ({ ...each, value })),
      };
    }),
  };
}

/** Sends each receiver either the correct message or a forgery of it. */
export function forger(liar: NodeId, names: readonly string[] = Object.keys(forgeries(liar))): ByzantineBehaviour {
  const all = forgeries(liar);
  return {
    lie(_to, letter) {
      const { body } = letter as unknown as { body: Message };
      const forged = names.flatMap((name) => all[name]?.(body) ?? []);
      return [letter, ...forged.map((each) => ({ ...letter, body: each }) as Tagged)];
    },
  };
}
