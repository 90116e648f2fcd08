/* Sentences for events of a chat, and names of chats. The server has the same texts in services/chat/page/texts.py. */

const ROLES = { owner: "an owner", moderator: "a moderator", member: "a member" };

const SENTENCES = {
    created: (by) => (by ? `${by} started the chat` : "The chat was started"),
    joined: (by, user) => (by && by !== user ? `${by} added ${user}` : `${user} joined`),
    left: (by, user) => `${user || by} left`,
    kicked: (by, user) => (by ? `${by} removed ${user}` : `${user} was removed`),
    blocked: (by, user) => (by ? `${by} blocked ${user}` : `${user} was blocked`),
    unblocked: (by, user) => (by ? `${by} unblocked ${user}` : `${user} was unblocked`),
    role: (by, user, detail) => (by ? `${by} made ${user} ${ROLES[detail]}` : `${user} is now ${ROLES[detail]}`),
    muted: (by, user) => (by ? `${by} muted ${user}` : `${user} was muted`),
    unmuted: (by, user) => (by ? `${by} unmuted ${user}` : `${user} was unmuted`),
    deleted: (by) => (by ? `${by} deleted a message` : "A message was deleted"),
    erased: (by, user) => `The messages of ${user} were erased`,
    renamed: (by, user, detail) => (by ? `${by} named the chat “${detail}”` : `The chat is now called “${detail}”`),
    configured: (by) => (by ? `${by} changed the settings` : "The settings were changed"),
    closed: (by) => (by ? `${by} closed the chat` : "The chat was closed"),
    reopened: (by) => (by ? `${by} reopened the chat` : "The chat was reopened"),
};

export function sentence(event, nameOf) {
    const [by, user] = [event.by, event.user].map((id) => (id ? nameOf(id) : ""));
    return SENTENCES[event.kind]?.(by, user, event.detail) ?? "The chat was changed";
}

/** A chat's title, or else the names of its other members. */
export function titleOf(chat, me, nameOf) {
    if (chat.title) return chat.title;
    const others = Object.keys(chat.reads ?? {}).filter((id) => id !== me).map(nameOf).sort();
    if (others.length > 3) return `${others.slice(0, 3).join(", ")} and ${others.length - 3} more`;
    if (others.length) return others.join(", ");
    return chat.member_count > 1 ? `Chat of ${chat.member_count}` : "Only you";
}

export function preview(chat, me, nameOf) {
    const last = chat.last_message;
    if (!last) return "";
    if (last.event) return sentence(last.event, nameOf);
    const text = last.text.replaceAll(/\s+/g, " ") || "Picture";
    return `${last.sender === me ? "You" : nameOf(last.sender)}: ${text}`;
}

export function seenBy(names, others) {
    if (names.length === others) return others > 1 ? "Seen by everyone" : "Seen";
    if (names.length > 3) return `Seen by ${names.slice(0, 3).join(", ")} and ${names.length - 3} more`;
    return `Seen by ${names.join(", ")}`;
}
