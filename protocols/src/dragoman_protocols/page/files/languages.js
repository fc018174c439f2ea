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

/** The glossaries that have terms for a pair. */
export function glossariesFor(glossaries, source, target) {
  const fits = (each) => primary(each.source_lang) === primary(source) && primary(each.target_lang) === primary(target);
  return source === AUTO ? [] : glossaries.filter((each) => each.dictionaries.some(fits));
}

/** The pair and the text in the fragment of an address; what it lacks is null. */
export function readFragment(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ''));
  return { source: fields.get('from'), target: fields.get('to'), text: fields.get('text') };
}

export function writeFragment({ source, target, text }) {
  return `#${new URLSearchParams({ from: source, to: target, text })}`;
}
