// One room as Hydrogen draws it. Opened by tests/e2e/hydrogen_stage.py, which logs in through window.enter.
import {
    Client, createNavigation, createRouter, FeatureSet, LoadStatus, Platform, RoomView, RoomViewModel, viewClassForTile,
} from "hydrogen-view-sdk";

const container = document.querySelector("#app");
const olm = { wasm: "olm/olm.wasm", wasmBundle: "olm/olm.js", legacyBundle: "olm/olm_legacy.js" };
const assetPaths = {
    downloadSandbox: "assets/download-sandbox.html", worker: "assets/main.js", serviceWorker: "sw.js", olm,
};

async function logIn(platform, { homeserver, user, password }) {
    const client = new Client(platform);
    const options = await client.queryLogin(homeserver).result;
    client.startWithLogin(options.password(user, password));
    const ends = [LoadStatus.Ready, LoadStatus.Error, LoadStatus.LoginFailed];
    await client.loadStatus.waitFor((status) => ends.includes(status)).promise;
    if (client.loadStatus.get() !== LoadStatus.Ready) throw client.loadError ?? new Error(String(client.loginFailure));
    return client.session;
}

async function until(look) {
    for (;;) {
        const found = look();
        if (found) return found;
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
}

window.enter = async ({ room: roomId, ...who }) => {
    const platform = new Platform({ container, assetPaths, config: {}, options: { development: false } });
    const navigation = createNavigation();
    platform.setNavigation(navigation);
    await platform.init();
    const urlRouter = createRouter({ navigation, history: platform.history });
    urlRouter.attach();
    const session = await logIn(platform, who);
    const room = await until(() => session.rooms.get(roomId));
    const features = await FeatureSet.load(platform.settingsStorage);
    const model = new RoomViewModel({ room, ownUserId: session.userId, platform, urlRouter, navigation, features });
    await model.load();
    container.append(new RoomView(model, viewClassForTile).mount());
};
