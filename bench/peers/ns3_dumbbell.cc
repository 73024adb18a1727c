// Two long flows over one slow link in ns-3, for bench/crosscheck.py.
// Usage: ns3_dumbbell QUEUE TCP RATE_GBPS SECONDS; QUEUE is droptail, red:MIN:MAX or codel:TARGET_US:INTERVAL_US, TCP is
// newreno, ecn, cubic or dctcp. Prints key=value. The first second is not measured. Written for ns-3.37.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include <unistd.h>
using namespace ns3;

static Ptr<QueueDisc> disc;
static Ptr<Queue<Packet>> device;
static double area = 0, last = 1.0;
static uint32_t present = 0, most = 0;
static uint64_t received = 0;

static void Account() {
  double now = Simulator::Now().GetSeconds();
  if (now > last) {
    area += present * (now - last);
    last = now;
  }
}

static void Changed(uint32_t, uint32_t) {
  Account();
  present = (disc ? disc->GetNPackets() : 0) + device->GetNPackets();
  if (Simulator::Now().GetSeconds() > 1.0) most = std::max(most, present);
}

static void Received(Ptr<const Packet> packet, const Address&) {
  if (Simulator::Now().GetSeconds() > 1.0) received += packet->GetSize();
}

int main(int, char** argv) {
  std::string spec = argv[1], tcp = argv[2];
  uint64_t rate = std::stoull(argv[3]) * 1000000000ull;
  double seconds = std::stod(argv[4]);
  std::vector<std::string> parts;
  for (size_t from = 0; from <= spec.size();) {
    size_t to = std::min(spec.find(':', from), spec.size());
    parts.push_back(spec.substr(from, to - from));
    from = to + 1;
  }
  Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                     StringValue(tcp == "dctcp" ? "ns3::TcpDctcp" : tcp == "cubic" ? "ns3::TcpCubic" : "ns3::TcpNewReno"));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 20));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 20));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
  Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(10)));
  Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
  if (tcp == "ecn" || tcp == "dctcp") Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"));

  NodeContainer nodes;
  nodes.Create(6);  // senders 0 and 1, switches 2 and 3, receivers 4 and 5
  InternetStackHelper stack;
  stack.SetIpv6StackInstall(false);
  stack.Install(nodes);
  PointToPointHelper access, slow;
  for (auto* helper : {&access, &slow}) helper->SetChannelAttribute("Delay", StringValue("5us"));
  access.SetDeviceAttribute("DataRate", DataRateValue(DataRate(10 * rate)));
  access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("2000p"));
  slow.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
  bool plain = parts[0] == "droptail";
  // Without a discipline the device's own queue is the buffer.
  slow.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(plain ? "201p" : "1p"));
  if (plain) slow.DisableFlowControl();
  NetDeviceContainer links[5] = {access.Install(nodes.Get(0), nodes.Get(2)), access.Install(nodes.Get(1), nodes.Get(2)),
                                 slow.Install(nodes.Get(2), nodes.Get(3)), access.Install(nodes.Get(3), nodes.Get(4)),
                                 access.Install(nodes.Get(3), nodes.Get(5))};
  TrafficControlHelper control;
  if (parts[0] == "red")
    control.SetRootQueueDisc("ns3::RedQueueDisc", "MinTh", DoubleValue(std::stod(parts[1])), "MaxTh", DoubleValue(std::stod(parts[2])),
                             "QW", DoubleValue(1), "LInterm", DoubleValue(10), "Wait", BooleanValue(false), "UseEcn", BooleanValue(true),
                             "UseHardDrop", BooleanValue(false), "Gentle", BooleanValue(false), "MeanPktSize", UintegerValue(1500),
                             "MaxSize", QueueSizeValue(QueueSize("200p")), "LinkBandwidth", DataRateValue(DataRate(rate)), "LinkDelay",
                             StringValue("5us"));
  if (parts[0] == "codel")
    control.SetRootQueueDisc("ns3::CoDelQueueDisc", "Target", TimeValue(MicroSeconds(std::stoi(parts[1]))), "Interval",
                             TimeValue(MicroSeconds(std::stoi(parts[2]))), "UseEcn", BooleanValue(true), "MaxSize",
                             QueueSizeValue(QueueSize("200p")));
  if (!plain) disc = control.Install(links[2].Get(0)).Get(0);
  device = DynamicCast<PointToPointNetDevice>(links[2].Get(0))->GetQueue();
  Ipv4AddressHelper addresses;
  Ipv4InterfaceContainer ends[5];
  for (int i = 0; i < 5; i++) {
    addresses.SetBase(("10.1." + std::to_string(i + 1) + ".0").c_str(), "255.255.255.0");
    ends[i] = addresses.Assign(links[i]);
    // Addressing installs a default discipline on every device; only ours shall act.
    for (int end = 0; end < 2; end++) {
      auto own = links[i].Get(end);
      if (!(i == 2 && end == 0 && disc) && own->GetNode()->GetObject<TrafficControlLayer>()->GetRootQueueDiscOnDevice(own))
        control.Uninstall(own);
    }
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  for (int f = 0; f < 2; f++) {
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
    sink.Install(nodes.Get(4 + f)).Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Received));
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(ends[3 + f].GetAddress(1), 9));
    source.SetAttribute("MaxBytes", UintegerValue(0));
    source.Install(nodes.Get(f)).Start(Seconds(f * 0.01));
  }
  if (disc) disc->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Changed));
  device->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Changed));
  Simulator::Stop(Seconds(seconds));
  Simulator::Run();
  Account();
  auto stats = disc ? disc->GetStats() : QueueDisc::Stats();
  std::cout << "goodput_mbps=" << received * 8e-6 / (seconds - 1.0) << " queue_mean=" << area / (seconds - 1.0) << " queue_max=" << most
            << " drops=" << stats.nTotalDroppedPackets + device->GetTotalDroppedPackets() << " marks=" << stats.nTotalMarkedPackets << std::endl;
  _exit(0);
}
