// Leaf-spine all-to-all shuffle on ns-3. args: racks hostsPerRack bytes [spines] [sched] [stopAfterSimSeconds]
// [stopAfterCpuSeconds]
#include <sys/resource.h>
#include <unistd.h>

#include <random>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
using namespace ns3;
static double cpu() {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return r.ru_utime.tv_sec + r.ru_utime.tv_usec * 1e-6;
}
static uint32_t R, H, S;
// O(1) per-flow ECMP. role 0 host, 1 leaf, 2 spine
class FlowEcmp : public Ipv4RoutingProtocol {
 public:
  static TypeId GetTypeId() {
    static TypeId t = TypeId("ns3::FlowEcmpBench").SetParent<Ipv4RoutingProtocol>();
    return t;
  }
  int role = 0;
  uint32_t rack = 0;
  Ptr<Ipv4> m;
  std::vector<Ptr<Ipv4Route>> rt;
  void SetIpv4(Ptr<Ipv4> i) override { m = i; }
  Ptr<Ipv4Route> R_(uint32_t ifc) {
    if (rt.size() <= ifc) rt.resize(ifc + 1);
    if (!rt[ifc]) {
      auto x = Create<Ipv4Route>();
      x->SetOutputDevice(m->GetNetDevice(ifc));
      x->SetSource(m->GetAddress(ifc, 0).GetLocal());
      x->SetGateway(Ipv4Address("0.0.0.1"));
      rt[ifc] = x;
    }
    return rt[ifc];
  }
  uint32_t Out(Ptr<const Packet> p, const Ipv4Header& h) {
    uint32_t d = h.GetDestination().Get();
    if (role == 0) return 1;
    uint32_t dr = (d >> 16) & 255, dh = (d >> 8) & 255;
    if (role == 2) return 1 + dr;
    if (dr == rack) return 1 + dh;
    uint8_t b[4] = {0, 0, 0, 0};
    p->CopyData(b, 4);
    uint64_t k = ((uint64_t)h.GetSource().Get() << 32) ^ d ^
                 (((uint64_t)b[0] << 40) | ((uint64_t)b[1] << 32) | (b[2] << 8) | b[3]);
    k *= 0x9E3779B97F4A7C15ull;
    k ^= k >> 31;
    k *= 0xBF58476D1CE4E5B9ull;
    return 1 + H + ((k >> 40) % S);
  }
  Ptr<Ipv4Route> RouteOutput(Ptr<Packet> p, const Ipv4Header& h, Ptr<NetDevice>, Socket::SocketErrno& e) override {
    e = Socket::ERROR_NOTERROR;
    return R_(1);
  }
  bool RouteInput(Ptr<const Packet> p, const Ipv4Header& h, Ptr<const NetDevice> i, UnicastForwardCallback u,
                  MulticastForwardCallback, LocalDeliverCallback l, ErrorCallback) override {
    if (role == 0) {
      l(p, h, 1);
      return true;
    }
    u(R_(Out(p, h)), p, h);
    return true;
  }
  void NotifyInterfaceUp(uint32_t) override {}
  void NotifyInterfaceDown(uint32_t) override {}
  void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
  void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
  void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}
};
static uint64_t g_rx = 0, g_need = 0, g_drop = 0;
static Time g_end;
static void Rx(Ptr<const Packet> p, const Address&) {
  g_rx += p->GetSize();
  if (g_rx >= g_need) {
    g_end = Simulator::Now();
    Simulator::Stop();
  }
}
static double g_lim = 0;
static void Chk() {
  if (cpu() > g_lim) {
    Simulator::Stop();
    return;
  }
  Simulator::Schedule(MicroSeconds(500), &Chk);
}
static void Drop(Ptr<const Packet>) { g_drop++; }
int main(int c, char** v) {
  R = atoi(v[1]);
  H = atoi(v[2]);
  uint64_t bytes = atoll(v[3]);
  S = c > 4 ? atoi(v[4]) : 2;
  uint32_t N = R * H;
  if (c > 5 && v[5][0]) {
    ObjectFactory f;
    f.SetTypeId(v[5]);
    Simulator::SetScheduler(f);
  }
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 20));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 20));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
  Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
  Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
  Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
  NodeContainer hosts, leaf, spine;
  hosts.Create(N);
  leaf.Create(R);
  spine.Create(S);
  InternetStackHelper st;
  st.SetIpv6StackInstall(false);
  for (auto& nc : {hosts, leaf, spine})
    for (uint32_t i = 0; i < nc.GetN(); i++) st.Install(nc.Get(i));
  std::vector<Ptr<NetDevice>> devs;
  PointToPointHelper pe, pf;
  for (auto* p : {&pe, &pf}) {
    p->DisableFlowControl();
    p->SetChannelAttribute("Delay", StringValue("5us"));
    p->SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("200p"));
  }
  pe.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
  pf.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
  auto addr = [&](Ptr<NetDevice> d, uint32_t a) {
    Ptr<Ipv4> ip = d->GetNode()->GetObject<Ipv4>();
    uint32_t i = ip->AddInterface(d);
    ip->AddAddress(i, Ipv4InterfaceAddress(Ipv4Address(a), Ipv4Mask("255.255.255.252")));
    ip->SetMetric(i, 1);
    ip->SetUp(i);
    devs.push_back(d);
  };
  for (uint32_t r = 0; r < R; r++)
    for (uint32_t h = 0; h < H; h++) {
      auto d = pe.Install(hosts.Get(r * H + h), leaf.Get(r));
      uint32_t b = (10u << 24) | (r << 16) | (h << 8);
      addr(d.Get(0), b | 2);
      addr(d.Get(1), b | 1);
    }
  for (uint32_t r = 0; r < R; r++)
    for (uint32_t s = 0; s < S; s++) {
      auto d = pf.Install(leaf.Get(r), spine.Get(s));
      uint32_t b = (11u << 24) | (r << 16) | (s << 8);
      addr(d.Get(0), b | 1);
      addr(d.Get(1), b | 2);
    }
  auto rp = [&](Ptr<Node> n, int role, uint32_t rack) {
    auto p = CreateObject<FlowEcmp>();
    p->role = role;
    p->rack = rack;
    n->GetObject<Ipv4>()->SetRoutingProtocol(p);
  };
  for (uint32_t i = 0; i < N; i++) rp(hosts.Get(i), 0, i / H);
  for (uint32_t i = 0; i < R; i++) rp(leaf.Get(i), 1, i);
  for (uint32_t i = 0; i < S; i++) rp(spine.Get(i), 2, 0);
  std::mt19937 g(1);
  std::uniform_real_distribution<double> U(0, 1e-3);
  for (uint32_t b = 0; b < N; b++) {
    PacketSinkHelper k("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
    auto a = k.Install(hosts.Get(b));
    a.Start(Seconds(0));
    a.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Rx));
  }
  uint64_t nf = 0;
  for (uint32_t a = 0; a < N; a++)
    for (uint32_t b = 0; b < N; b++)
      if (a != b) {
        BulkSendHelper k("ns3::TcpSocketFactory",
                         InetSocketAddress(Ipv4Address((10u << 24) | ((b / H) << 16) | ((b % H) << 8) | 2), 9));
        k.SetAttribute("MaxBytes", UintegerValue(bytes));
        k.SetAttribute("SendSize", UintegerValue(1460));
        auto x = k.Install(hosts.Get(a));
        x.Start(Seconds(U(g)));
        nf++;
      }
  g_need = nf * bytes;
  for (auto d : devs)
    DynamicCast<PointToPointNetDevice>(d)->GetQueue()->TraceConnectWithoutContext("Drop", MakeCallback(&Drop));
  if (c > 6) Simulator::Stop(Seconds(atof(v[6])));
  if (c > 7) {
    g_lim = atof(v[7]);
    Simulator::Schedule(MicroSeconds(500), &Chk);
  }
  double t0 = cpu();
  Simulator::Run();
  double t1 = cpu();
  uint64_t hops = 0;
  for (auto d : devs) {
    auto q = DynamicCast<PointToPointNetDevice>(d)->GetQueue();
    hops += q->GetTotalReceivedPackets() - q->GetTotalDroppedPacketsAfterDequeue();
  }
  uint64_t ev = Simulator::GetEventCount();
  double t = t1 - t0;
  fprintf(stderr,
          "RESULT sim=ns3 hosts=%u flows=%lu rx_bytes=%lu/%lu events=%lu pkt_hops=%lu data_pkts_needed=%lu drops=%lu "
          "makespan_s=%.6f simnow=%.6f setup_cpu=%.2f run_cpu=%.2f ev/s=%.3g hops/s=%.3g ev/hop=%.2f\n",
          N, nf, g_rx, g_need, ev, hops, nf * ((bytes + 1459) / 1460), g_drop, g_end.GetSeconds(),
          Simulator::Now().GetSeconds(), t0, t, ev / t, hops / t, (double)ev / hops);
  _exit(0);
}
