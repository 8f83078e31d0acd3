/** Explains why a certificate is refused, with the remedy. */

/** Codes and messages of OpenSSL and Node. */
const flaws: readonly (readonly [words: RegExp, sentence: string])[] = [
  [
    /CERT_HAS_EXPIRED|certificate has expired/,
    "the certificate of that member has expired: replace its file (coterie cert ID --renew makes a new one), which a running member reloads",
  ],
  [
    /CERT_NOT_YET_VALID|certificate is not yet valid/,
    "the certificate of that member is not valid yet: correct the clocks of the two machines",
  ],
  [
    /UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT|SELF_SIGNED_CERT|CERT_SIGNATURE_FAILURE|unable to verify the first certificate|unable to get (local )?issuer certificate|self-signed certificate|certificate signature failure/,
    "the certificate of that member is not signed by a known authority: set ca to the certificate of the authority that signed it",
  ],
  [
    /altnames/,
    "the certificate of that member does not have the name that is used here: make one with this name, or use a name that it has",
  ],
];

/** @param why the code or the message of an error. @returns it, preceded by an explanation and remedy if one is known */
export function inPlainWords(why: string): string {
  const found = flaws.find(([words]) => words.test(why));
  return found === undefined ? why : `${found[1]} (${why})`;
}
