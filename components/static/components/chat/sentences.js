/* Sentences for events of a chat, and names of chats. The server has the same texts in services/chat/page/texts.py. */

import { gettext, interpolate, ngettext } from "../i18n.js";
import { plain } from "./dom.js";

/* The sentences for events: with the person who did it, and without. */
const SENTENCES = {
    created: [gettext("%(by)s started the chat"), gettext("The chat was started")],
    joined: [gettext("%(by)s added %(user)s"), gettext("%(user)s joined")],
    left: [gettext("%(user)s left"), gettext("%(user)s left")],
    kicked: [gettext("%(by)s removed %(user)s"), gettext("%(user)s was removed")],
    blocked: [gettext("%(by)s blocked %(user)s"), gettext("%(user)s was blocked")],
    unblocked: [gettext("%(by)s unblocked %(user)s"), gettext("%(user)s was unblocked")],
    muted: [gettext("%(by)s muted %(user)s"), gettext("%(user)s was muted")],
    unmuted: [gettext("%(by)s unmuted %(user)s"), gettext("%(user)s was unmuted")],
    deleted: [gettext("%(by)s deleted a message"), gettext("A message was deleted")],
    erased: [gettext("The messages of %(user)s were erased"), gettext("The messages of %(user)s were erased")],
    renamed: [gettext("%(by)s named the chat “%(detail)s”"), gettext("The chat is now called “%(detail)s”")],
    configured: [gettext("%(by)s changed the settings"), gettext("The settings were changed")],
    closed: [gettext("%(by)s closed the chat"), gettext("The chat was closed")],
    reopened: [gettext("%(by)s reopened the chat"), gettext("The chat was reopened")],
};

const ROLES = {
    owner: [gettext("%(by)s made %(user)s an owner"), gettext("%(user)s is now an owner")],
    moderator: [gettext("%(by)s made %(user)s a moderator"), gettext("%(user)s is now a moderator")],
    member: [gettext("%(by)s made %(user)s a member"), gettext("%(user)s is now a member")],
};

export function sentence(event, nameOf) {
    const [by, user] = [event.by, event.user].map((id) => (id ? nameOf(id) : ""));
    const told = event.kind === "role" ? ROLES[event.detail] : SENTENCES[event.kind];
    if (!told) return gettext("The chat was changed");
    const isByAnother = by && !(event.kind === "joined" && event.by === event.user);
    return interpolate(told[isByAnother ? 0 : 1], { by, user: user || by, detail: event.detail });
}

/** A chat's title, or else the names of its other members. */
export function titleOf(chat, me, nameOf) {
    if (chat.title) return chat.title;
    const others = Object.keys(chat.reads ?? {}).filter((id) => id !== me).map(nameOf).sort();
    if (others.length > 3) {
        const more = others.length - 3;
        return interpolate(ngettext("%(names)s and %(count)s more", "%(names)s and %(count)s more", more), { names: others.slice(0, 3).join(", "), count: more });
    }
    if (others.length) return others.join(", ");
    if (chat.member_count < 2) return gettext("Only you");
    return interpolate(ngettext("Chat of %(count)s", "Chat of %(count)s", chat.member_count), { count: chat.member_count });
}

export function preview(chat, me, nameOf) {
    const last = chat.last_message;
    if (!last) return "";
    if (last.event) return sentence(last.event, nameOf);
    const text = (last.rich ? plain(last.rich) : last.text).replaceAll(/\s+/g, " ").trim() || gettext("Picture");
    return last.sender === me ? interpolate(gettext("You: %(text)s"), { text }) : `${nameOf(last.sender)}: ${text}`;
}

/** Who has the chat open: some names, and how many people they are. */
export function hereNow(names, count) {
    const shown = names.slice(0, 3);
    if (!shown.length) return "";
    const more = count - shown.length;
    if (more <= 0) return interpolate(gettext("Here now: %(names)s"), { names: shown.join(", ") });
    return interpolate(ngettext("Here now: %(names)s and %(count)s more", "Here now: %(names)s and %(count)s more", more), { names: shown.join(", "), count: more });
}

export function typingNow(names) {
    if (!names.length) return "";
    if (names.length === 1) return interpolate(gettext("%(name)s is typing…"), { name: names[0] });
    if (names.length > 3) return gettext("Several people are typing…");
    return interpolate(gettext("%(names)s and %(name)s are typing…"), { names: names.slice(0, -1).join(", "), name: names.at(-1) });
}

export function seenBy(names, others) {
    if (names.length === others) return others > 1 ? gettext("Seen by everyone") : gettext("Seen");
    if (names.length > 3) {
        const more = names.length - 3;
        const text = ngettext("Seen by %(names)s and %(count)s more", "Seen by %(names)s and %(count)s more", more);
        return interpolate(text, { names: names.slice(0, 3).join(", "), count: more });
    }
    return interpolate(gettext("Seen by %(names)s"), { names: names.join(", ") });
}
