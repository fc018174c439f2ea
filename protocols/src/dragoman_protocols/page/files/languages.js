// Languages as values: which pairs are served, what they are called, and the pair and the text in an address.

export const AUTO = 'auto';

const primary = (tag) => tag.toLowerCase().split('-')[0];

/** The listed tag that is a language, or its nearest: another form of the same language; undefined without one. */
export function closest(tag, tags) {
  if (!tag) return undefined;
  const lower = tag.toLowerCase();
  return tags.find((each) => each.toLowerCase() === lower) ?? tags.find((each) => primary(each) === primary(tag));
}

/** What a source can be translated to; of all sources where it is detected. */
export function targetsOf(languages, source) {
  const found = source === AUTO ? languages : languages.filter((each) => each.code === source);
  return [...new Set(found.flatMap((each) => each.targets))];
}

/** A function from tags to names, those of the server first. */
export function namer(languages) {
  const listed = new Map(languages.map((each) => [each.code, each.name]));
  const other = new Intl.DisplayNames(['en'], { type: 'language' });
  return (tag) => {
    try { return listed.get(tag) ?? other.of(tag); } catch { return tag; }
  };
}

/** The pair after a swap, or null where it is not served; `detected` is the source where it is not chosen. */
export function swapped(languages, { source, target, detected }) {
  const from = closest(target, languages.map((each) => each.code));
  const to = from && closest(source === AUTO ? detected : source, targetsOf(languages, from));
  return to ? { source: from, target: to } : null;
}

/**
 * Another target for a text in the language `detected`, which is the target: the first of `wanted` that is served, else any; null
 * without one.
 */
export function otherTarget(languages, detected, wanted) {
  const from = closest(detected, languages.map((each) => each.code));
  const targets = from ? targetsOf(languages, from).filter((each) => primary(each) !== primary(detected)) : [];
  return wanted.map((tag) => closest(tag, targets)).find(Boolean) ?? targets[0] ?? null;
}

/** The glossaries that have terms for a pair; from some language where the source is detected. */
export function glossariesFor(glossaries, source, target) {
  const fits = (each) => (source === AUTO || primary(each.source_lang) === primary(source)) && primary(each.target_lang) === primary(target);
  return glossaries.filter((each) => each.dictionaries.some(fits));
}

/** Names as a sentence lists them, the first of many. */
export function listed(names, most = 12) {
  const shown = names.length > most ? [...names.slice(0, most - 1), `${names.length - most + 1} others`] : names;
  return new Intl.ListFormat('en').format(shown);
}

/** What of a pair is not served, as a sentence with what is; empty where all is. */
export function unservedIn(languages, { source, target }, named) {
  const sources = languages.map((each) => each.code);
  const from = source === AUTO ? AUTO : closest(source, sources);
  if (!from) return `${named(source)} is not served here. Texts are translated from ${listed(sources.map(named))}.`;
  const targets = targetsOf(languages, from);
  if (!target || closest(target, targets)) return '';
  const origin = from === AUTO ? '' : ` for texts in ${named(from)}`;
  return `${named(target)} is not served here${origin}. Texts are translated to ${listed(targets.map(named))}.`;
}

/** What is served for texts in a language that is not translated to the target: its other targets, else the target's sources. */
export function servedInstead(languages, source, target, named) {
  const from = closest(source, languages.map((each) => each.code));
  if (from) return `It is translated to ${listed(targetsOf(languages, from).map(named))}.`;
  const sources = languages.filter((each) => each.targets.includes(target)).map((each) => named(each.code));
  return `Texts are translated to ${named(target)} from ${listed(sources)}.`;
}

/** The pair and the text in the fragment of an address; what it lacks is null. */
export function readFragment(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ''));
  return { source: fields.get('from'), target: fields.get('to'), text: fields.get('text') };
}

export function writeFragment({ source, target, text }) {
  return `#${new URLSearchParams({ from: source, to: target, text })}`;
}
