// What the server found in a translation, in words for the user.

/** Of warnings about a text, by their codes; `language` is that of the translation, `detail` the server's words. */
const SENTENCES = {
  truncated: () => 'Its end may be missing.',
  repetition: () => 'It may repeat itself.',
  empty: () => 'A part of it may be missing.',
  runaway: () => 'It is much longer than the text.',
  incomplete: () => 'A part of the text may be missing.',
  untranslated: (language) => `A part of it may not be translated to ${language}.`,
  wrong_script: (language) => `A part of it may not be in ${language}.`,
  wrong_language: (language) => `A part of it may not be in ${language}.`,
  preamble: () => 'It may have words that are not of the text.',
  injection: () => 'It may follow instructions of the text instead of translating them.',
  placeholders: (_, detail) => `Placeholders differ: ${detail}.`,
  numbers: (_, detail) => `Numbers differ: ${detail}.`,
  source_uncertain: () => 'The language of the text is a guess. If it is wrong, choose it above the text.',
  source_kept: () => 'A part of it is left as it was, because its translation failed.',
};

/** What to check in a translation, each sentence once. */
export function sentencesOf(warnings, language) {
  const worded = ({ code, detail }) => SENTENCES[code]?.(language, detail) ?? `${detail.charAt(0).toUpperCase()}${detail.slice(1)}.`;
  return [...new Set(warnings.map(worded))];
}

/** What of a file is not translated, by the numbers of its findings; empty if all is. */
export function remarksOf(findings = {}, language = '') {
  if (findings.nothing_to_translate) return 'Nothing was found to translate';
  const left = [
    [findings.parts_left, 'part of it, such as an embedded document, is', 'parts of it, such as embedded documents, are', 'not translated'],
    [findings.target_language, 'text is', 'texts are', `in ${language} already`],
    [findings.source_kept, 'segment stays', 'segments stay', 'in the source language'],
  ].filter(([count]) => count).map(([count, one, several, what]) => `${count} ${count === 1 ? one : several} ${what}`);
  return left.length ? `Translated to ${language}, but ${left.join(', ')}` : '';
}
