//! The views of a project that clients use now. Clients with the same view share its lists.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use wharf_config::Config;
use wharf_gateway::{Gateway, WeakGateway};

use super::view::ServedView;

/// The views in use. A view that no client uses any more is forgotten.
#[derive(Default)]
pub struct ViewCache(Mutex<HashMap<ServedView, CachedView>>);

struct CachedView {
    /// The configuration that the view was made for: a profile may have changed since.
    config: Arc<Config>,
    gateway: WeakGateway,
}

impl ViewCache {
    /// Returns the gateway for a view, and makes it if no client of the same configuration uses it.
    pub fn open(&self, view: &ServedView, config: &Arc<Config>, make: impl FnOnce() -> Gateway) -> Gateway {
        let mut views = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = views.get(view).filter(|known| Arc::ptr_eq(&known.config, config));
        if let Some(gateway) = known.and_then(|known| known.gateway.upgrade()) {
            return gateway;
        }
        views.retain(|_, known| known.gateway.upgrade().is_some());
        let gateway = make();
        views.insert(view.clone(), CachedView { config: Arc::clone(config), gateway: gateway.downgrade() });
        gateway
    }
}

#[cfg(test)]
mod tests {
    use wharf::Host;
    use wharf_gateway::{GatewayOptions, ViewOptions};
    use wharf_terminal::gateway_socket::ViewRequest;

    use super::*;

    fn selecting(server: &str) -> ServedView {
        ViewRequest { servers: vec![server.to_owned()], ..ViewRequest::default() }.into()
    }

    #[tokio::test]
    async fn views_are_kept_only_as_long_as_clients_use_them() {
        let host = Host::builder().start().await.unwrap();
        let gateway = Gateway::new(host.clone(), GatewayOptions::default());
        let (views, config) = (ViewCache::default(), Arc::<Config>::default());
        let make = || gateway.with_view(ViewOptions::default());
        let used = views.open(&selecting("used"), &config, make);
        for number in 0..1000 {
            drop(views.open(&selecting(&format!("s{number}")), &config, make));
        }
        assert!(views.0.lock().unwrap().len() <= 2);
        views.open(&selecting("used"), &config, || panic!("a client uses it"));
        let mut is_new = false;
        views.open(&selecting("used"), &Arc::default(), || {
            is_new = true;
            make()
        });
        assert!(is_new, "another configuration makes another view");
        drop(used);
        host.close().await;
    }
}
