// One person with matrix-js-sdk, driven by JSON lines. Spoken to by tests/e2e/e2ee_client.py, which documents the verbs.
//   in:   {"id": 1, "verb": "send", ...arguments}
//   out:  {"id": 1, "result": ...} or {"id": 1, "error": "..."}, and unasked {"event": {...}} for each event of a room,
//         again whenever it could be decrypted later. Out-of-band words go to standard error.
import "./polyfill.mjs";
import "fake-indexeddb/auto"; // keys outlive a restart of the client, as in a browser
import { createInterface } from "node:readline";
import { Attachment, EncryptedAttachment } from "@matrix-org/matrix-sdk-crypto-wasm";
import * as sdk from "matrix-js-sdk";
import { AllDevicesIsolationMode, OnlySignedDevicesIsolationMode } from "matrix-js-sdk/lib/crypto-api/index.js";

const HISTORY = 100; // events of each room that a (re)start shows
const silent = { trace() {}, debug() {}, info() {}, warn() {}, error: console.error, getChild: () => silent };

let client, account;
// encrypted rooms and who was in them when the client stopped: nothing is written there in clear, nor to half of them
const sealed = new Map();
let reported = Promise.resolve(); // one after the other, so that the order of a room survives decryption

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");

function describe(event) {
    const failed = event.isDecryptionFailure();
    const content = failed ? event.getWireContent() : { ...event.getOriginalContent() };
    if (event.isEncrypted() && !failed) {
        // servers and other clients only know the relation that is outside of the encryption
        content["m.relates_to"] = event.getWireContent()["m.relates_to"];
    }
    return {
        event_id: event.getId(),
        room_id: event.getRoomId(),
        type: failed ? event.getWireType() : event.getType(),
        sender: event.getSender(),
        origin_server_ts: event.getTs(),
        state_key: event.getStateKey(),
        redacts: event.event.redacts,
        unsigned: event.getUnsigned(),
        content,
        was_encrypted: event.isEncrypted(),
        decryption_failure: failed ? event.decryptionFailureReason : null,
    };
}

function report(event) {
    if (!event.getRoomId()) return;
    reported = reported.then(async () => {
        await client.decryptEventIfNeeded(event);
        say({ event: describe(event) });
    });
    reported.catch(fail);
}

async function open() {
    client = sdk.createClient({ ...account, logger: silent });
    await client.initRustCrypto({ useIndexedDB: true, cryptoDatabasePrefix: account.userId });
    const crypto = client.getCrypto();
    crypto.setDeviceIsolationMode(
        account.isolates ? new OnlySignedDevicesIsolationMode() : new AllDevicesIsolationMode(false),
    );
    client.on(sdk.ClientEvent.Event, report);
    client.on(sdk.MatrixEventEvent.Decrypted, report);
    const synced = new Promise((resolve) =>
        client.on(sdk.ClientEvent.Sync, (state) => ["PREPARED", "SYNCING"].includes(state) && resolve()),
    );
    await client.startClient({ threadSupport: true, initialSyncLimit: HISTORY });
    await synced;
    await Promise.all([...sealed].map(untilAsBefore));
}

async function isSealed(room) {
    const hasState = client.getRoom(room)?.hasEncryptionStateEvent() ?? false;
    return hasState && (await client.getCrypto().isEncryptionEnabledInRoom(room));
}

async function untilAsBefore([room, people]) {
    const isThere = (user) => client.getRoom(room).getMember(user) !== null;
    for (let tries = 0; !((await isSealed(room)) && people.every(isThere)); tries++) {
        if (tries > 600) throw new Error(`${room} was encrypted and had ${people}, and it is not so after a restart`);
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
}

async function signDevice(password) {
    const auth = { type: "m.login.password", identifier: { type: "m.id.user", user: account.userId }, password };
    await client.getCrypto().bootstrapCrossSigning({ authUploadDeviceSigningKeys: (upload) => upload(auth) });
}

const verbs = {
    async login({ url, user, password, signs, isolates }) {
        const guest = sdk.createClient({ baseUrl: url, logger: silent });
        const identifier = { type: "m.id.user", user };
        const reply = await guest.loginRequest({ type: "m.login.password", identifier, password });
        account = {
            baseUrl: url, userId: reply.user_id, deviceId: reply.device_id, accessToken: reply.access_token, isolates,
        };
        await open();
        if (signs) await signDevice(password);
        return { device_id: reply.device_id, access_token: reply.access_token };
    },
    async stop() {
        for (const room of client.getRooms()) {
            const people = room.getJoinedMembers().map(({ userId }) => userId);
            if (await isSealed(room.roomId)) sealed.set(room.roomId, people);
        }
        client.stopClient();
        await reported;
    },
    start: () => open(),
    call: ({ method, path, body, query }) => client.http.authedRequest(method, path, query, body),
    async send({ room, kind, content }) {
        return (await client.sendEvent(room, null, kind, content)).event_id;
    },
    async read_file({ file }) {
        const address = client.mxcUrlToHttp(file.url, undefined, undefined, undefined, false, true, true);
        const answer = await fetch(address, { headers: { Authorization: `Bearer ${client.getAccessToken()}` } });
        if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
        const raw = new Uint8Array(await answer.arrayBuffer());
        const plain = Attachment.decrypt(new EncryptedAttachment(raw, JSON.stringify(file)));
        return { stored: new TextDecoder().decode(raw), text: new TextDecoder().decode(plain) };
    },
    async scroll_up({ room: roomId }) {
        const room = client.getRoom(roomId);
        while (room.oldState.paginationToken !== null) await client.scrollback(room, HISTORY);
        room.getLiveTimeline().getEvents().forEach(report);
        await reported;
    },
    rotate: ({ room }) => client.getCrypto().forceDiscardSession(room),
    async devices({ user }) {
        const crypto = client.getCrypto();
        const devices = (await crypto.getUserDeviceInfo([user], true)).get(user) ?? new Map();
        const verdicts = [];
        for (const [id] of devices) {
            const status = await crypto.getDeviceVerificationStatus(user, id);
            verdicts.push([id, status?.signedByOwner ?? false]);
        }
        return Object.fromEntries(verdicts);
    },
};

function fail(error) {
    console.error(error);
    process.exitCode = 1;
    process.exit();
}

async function serve(line) {
    const { id, verb, ...rest } = JSON.parse(line);
    try {
        say({ id, result: (await verbs[verb](rest)) ?? null });
    } catch (error) {
        console.error(error);
        say({ id, error: String(error) });
    }
}

process.on("unhandledRejection", (reason) => console.error("unhandled", reason)); // a server that is away, for one
createInterface({ input: process.stdin }).on("line", serve).on("close", () => process.exit());
