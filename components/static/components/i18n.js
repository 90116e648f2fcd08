/*
 * Texts in the language of the page. A page loads Django's JavaScriptCatalog, a classic script with "defer", before its
 * modules. If it does not, or if the catalogue cannot be loaded, the texts are English.
 */

const ENGLISH = { gettext: (text) => text, ngettext: (one, many, count) => (count === 1 ? one : many) };

export const { gettext, ngettext } = globalThis.django?.gettext ? globalThis.django : ENGLISH;

const page = globalThis.document?.documentElement.lang || undefined;
const isOfPage = (language) => language.split("-")[0] === page.split("-")[0];

/** The language of dates and numbers: that of the page, as it is written where the visitor lives ("en-GB" for "en"). */
export const LANGUAGE = page && (navigator.languages.find(isOfPage) ?? page);

/** Put *values* into a text, as "%(name)s of %(total)s". */
export const interpolate = (text, values) => text.replace(/%\((\w+)\)s/g, (_match, name) => values[name]);
